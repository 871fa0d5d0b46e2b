import { lookAgain, type Plan } from '../../controller/plan.ts'
import { type Resource, refOf } from '../../core/resource.ts'
import type { DaemonHealingStatus, OnionHealingStatus } from '../api/probe.ts'
import {
  DAEMON_NOT_HEALED,
  type DaemonHealing,
  type HealingStep,
  heal,
  type OnionHealing,
  type Patient,
} from './healing.ts'
import {
  daemonHealingStatus,
  onionHealingStatus,
  readDaemonHealing,
  readOnionHealing,
} from './healing-status.ts'
import type { Observed, ObservedOnion } from './observed.ts'
import { onionConditions } from './onion-status.ts'
import { HEALABLE } from './reachability.ts'

/** What is remembered of a daemon's healing, after this turn. */
export interface Healing {
  daemon: DaemonHealing
  /** By name. */
  onions: ReadonlyMap<string, OnionHealing>
}

export const NOTHING_HEALED: Healing = { daemon: DAEMON_NOT_HEALED, onions: new Map() }

/** What events say of a step. */
const EVENTS: Readonly<Record<HealingStep, { event: string; does: string }>> = {
  Republish: {
    event: 'HealingRepublished',
    does: 'visitors do not reach it: it is published anew',
  },
  FreshCircuits: {
    event: 'HealingFreshCircuits',
    does: 'visitors still do not reach it: it is published anew, and its tor uses new circuits',
  },
  Restart: {
    event: 'HealingTorRestarted',
    does: 'visitors still do not reach it, nor most onions of its daemon: its tor is started anew',
  },
}

/** Takes the steps that are due for onions that visitors do not reach, and tells of each. */
export function planHealing(plan: Plan, observed: Observed, now: number): Healing {
  const { object, onions, view } = observed
  const memories = new Map(
    onions.map(({ object: onion }) => [onion.metadata.name, readOnionHealing(onion.status?.healing)]),
  )
  const before = readDaemonHealing(object?.status?.healing)
  // Without a tor that works and says so there is nothing that could be made to help.
  const tor = view?.report
  if (object === undefined || tor === undefined || !tor.tor.bootstrapped || tor.leaving === true) {
    return { daemon: before, onions: memories }
  }
  const patients = onions.map((onion) => patientOf(onion, observed, memories, now))
  const healed = heal(patients, before, now)
  for (const { onion, step } of healed.steps) {
    const { object: about } = onions.find(({ object: one }) => one.metadata.name === onion)!
    tell(plan, about, step)
  }
  if (healed.steps.some(({ step }) => step === 'Restart')) tell(plan, object, 'Restart')
  if (healed.again !== undefined) lookAgain(plan, healed.again)
  return {
    daemon: healed.daemon ?? before,
    onions: new Map([...memories].map(([name, memory]) => [name, healed.onions.get(name) ?? memory])),
  }
}

/** `healing` of an onion's status, where there is something to remember. */
export function onionHealing({ onions }: Healing, name: string): { healing?: OnionHealingStatus } {
  const healing = onions.get(name)
  const status = healing === undefined ? undefined : onionHealingStatus(healing)
  return status === undefined ? {} : { healing: status }
}

export function daemonHealing({ daemon }: Healing): { healing?: DaemonHealingStatus } {
  const status = daemonHealingStatus(daemon)
  return status === undefined ? {} : { healing: status }
}

function patientOf(
  onion: ObservedOnion,
  observed: Observed,
  memories: ReadonlyMap<string, OnionHealing>,
  now: number,
): Patient {
  const { name } = onion.object.metadata
  const seen = observed.prober?.watched.get(name)
  const patient = { name, healing: memories.get(name)!, failures: seen?.failures ?? 0 }
  if (seen?.reachable === undefined) return { ...patient, state: 'unknown' }
  // Most are so, and nothing follows from it.
  if (seen.reachable && patient.healing.attempts === 0) return { ...patient, state: 'well' }
  const conditions = onionConditions(onion, observed, now)
  const sight = conditions.find(({ type }) => type === 'Reachable')
  if (sight?.status === 'True') return { ...patient, state: 'well' }
  // One that is not published, or whose backend is not ready, has another reason than these, or is not False.
  const ill = sight?.status === 'False' && HEALABLE.has(sight.reason)
  return { ...patient, state: ill ? 'ill' : 'unknown' }
}

function tell(plan: Plan, object: Resource, step: HealingStep): void {
  const { uid } = object.metadata
  const { event, does } = EVENTS[step]
  const about = { ...refOf(object), ...(uid === undefined ? {} : { uid }) }
  const message =
    object.kind === 'TorDaemon' ? 'visitors do not reach most of its onions: tor is started anew' : does
  plan.notes.push({ about, type: 'Warning', reason: event, message })
}
