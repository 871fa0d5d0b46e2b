import { lookAgain, type OutsideCall, type Plan } from '../../controller/plan.ts'
import type { ConditionInput, ConditionStatus } from '../../core/conditions.ts'
import { BRIDGES_DEFAULTS } from '../api/bridges.ts'
import { Reason } from '../api/reasons.ts'
import { type Curation, curate } from '../bridges/curation.ts'
import { readCurationState, writeCurationState } from '../bridges/curation-state.ts'
import { BRIDGES_FILE } from '../contract.ts'
import { BRIDGES_STATE_FILE, type ObservedBridges } from './bridge-seed.ts'
import type { Observed } from './observed.ts'
import { aboutOf } from './status.ts'

/** The bridges of a daemon: from the user's seed, what was fetched, and what tor says of each, to the set in use. */

export const FETCH_CALL = 'tor.fetch-bridges'

export interface DaemonBridges {
  curation: Curation
  observed: ObservedBridges
  /** Files of the keys Secret. */
  files: Record<string, string>
}

/** The set of a daemon as it is to be now; undefined where it has no bridges. */
export function curateBridges(observed: Observed, now: number): DaemonBridges | undefined {
  const { bridges, object, view } = observed
  const spec = object?.spec?.bridges
  if (bridges === undefined || spec === undefined) return undefined
  const { transport, minHealthy, maxBridges, evictGraceSeconds } = { ...BRIDGES_DEFAULTS, ...spec }
  const curation = curate(
    {
      seed: bridges.seed,
      state: readCurationState(bridges.state, [transport]),
      health: view?.report?.bridges ?? [],
      minHealthy,
      maxBridges,
      evictGraceSeconds,
      ...(spec.source === undefined ? {} : { source: spec.source.https.url }),
      ...(bridges.outcome === undefined ? {} : { outcome: bridges.outcome }),
    },
    now,
  )
  const files = { [BRIDGES_FILE]: curation.text, [BRIDGES_STATE_FILE]: writeCurationState(curation.state) }
  return { curation, observed: bridges, files }
}

/** Events, a fetch that is due, and when to look again. */
export function planBridges(plan: Plan, { object, daemon }: Observed, { curation }: DaemonBridges): void {
  const about = aboutOf(object!)
  const tell = (reason: string, text: string, fingerprints: readonly string[]): void => {
    if (fingerprints.length === 0) return
    plan.notes.push({ about, type: 'Normal', reason, message: `${text}: ${fingerprints.join(', ')}` })
  }
  tell('BridgesAdded', 'bridges were fetched and are used', curation.added)
  tell('BridgesEvicted', 'bridges were dead for too long and were taken out', curation.evicted)
  tell('BridgesDisplaced', 'bridges have no place any more', curation.displaced)
  if (curation.again !== undefined) lookAgain(plan, curation.again)
  if (curation.fetch !== undefined) {
    const { source, asked } = curation.fetch
    const transport = object?.spec?.bridges?.transport ?? BRIDGES_DEFAULTS.transport
    const key = `${daemon.namespace}/${daemon.name}`
    const call: OutsideCall = {
      name: FETCH_CALL,
      with: { daemon: key, source, asked: String(asked), transport },
    }
    plan.calls.push(call)
  }
}

/** The `bridges` of a daemon's status: fingerprints, never lines. */
export function bridgesStatus(bridges: DaemonBridges | undefined): Record<string, unknown> {
  if (bridges === undefined) return {}
  return {
    bridges: bridges.curation.bridges.slice(0, 100).map(({ fingerprint, seed, state, since, reason }) => ({
      fingerprint,
      seed,
      state,
      ...(since === undefined ? {} : { since: rfc3339(since) }),
      ...(reason === undefined ? {} : { reason }),
    })),
  }
}

/** @param silent why the agent cannot be believed */
export function bridgesCondition(
  { object }: Observed,
  bridges: DaemonBridges | undefined,
  silent: { status: ConditionStatus; reason: string; message: string } | undefined,
): ConditionInput | undefined {
  if (bridges === undefined) return undefined
  const type = 'BridgesHealthy'
  const { curation, observed } = bridges
  const all = curation.bridges
  const no = (reason: string, message: string): ConditionInput => ({
    type,
    status: 'False',
    reason,
    message: [message, failureOf(curation), ...observed.refused].filter((text) => text !== '').join('; '),
  })
  const { problem } = observed
  if (problem !== undefined) {
    if (problem.reason === Reason.Pending) return { type, status: 'Unknown', ...problem }
    const rest = all.length === 0 ? 'there is no bridge' : `the ${all.length} known ones are used meanwhile`
    return no(problem.reason, `${problem.message}; ${rest}`)
  }
  if (all.length === 0) return no(Reason.NoBridges, 'there is no usable bridge, so tor stays off the network')
  if (silent !== undefined) return { type, ...silent }
  const healthy = all.filter(({ state }) => state === 'healthy').length
  const dead = all.filter(({ state }) => state === 'dead').length
  const least = object?.spec?.bridges?.minHealthy ?? BRIDGES_DEFAULTS.minHealthy
  if (dead === all.length) {
    const full =
      curation.need === 'full' ? ': more bridges in the seed, or a larger maxBridges, would help' : ''
    return no(Reason.BridgesDead, `tor reaches none of the ${all.length} bridges${full}`)
  }
  if (healthy === 0) {
    return { type, status: 'Unknown', reason: Reason.Pending, message: 'tor has not reached a bridge yet' }
  }
  if (all.length - dead < least) {
    return no(
      Reason.TooFewBridges,
      `${all.length - dead} of ${all.length} bridges are not dead, and ${least} should be`,
    )
  }
  const refused = observed.refused.length === 0 ? '' : `; ${observed.refused.join('; ')}`
  const message = `${healthy} of ${all.length} bridges are healthy, ${dead} dead${refused}`
  return { type, status: 'True', reason: Reason.BridgesHealthy, message }
}

function failureOf({ state }: Curation): string {
  const { failure } = state.fetch
  return failure === undefined ? '' : `the last fetch failed (${failure.reason}): ${failure.message}`
}

function rfc3339(time: number): string {
  return new Date(time).toISOString().replace(/\.\d+Z$/, 'Z')
}
