import { type Condition, type ConditionInput, findCondition } from '../../core/conditions.ts'
import type { OnionService } from '../api/onion-service.ts'
import { Reason } from '../api/reasons.ts'
import type { WatchedState, WatchPlan } from '../contract.ts'
import { WATCH_EVERY } from '../limits.ts'
import type { Observed, ObservedOnion, ObservedProber } from './observed.ts'

/** Whether visitors reach an onion, as another namespace's tor sees it. */

/** Failures that are tor's doing, on the onion's side: publishing anew may help. */
export const HEALABLE: ReadonlySet<string> = new Set([
  'DescriptorNotFound',
  'DescriptorInvalid',
  'IntroductionFailed',
  'IntroductionTimedOut',
  'RendezvousFailed',
  'HostUnreachable',
  'TtlExpired',
  'TimedOut',
  // Its tor has other ports, or other clients, than it was given.
  'ConnectionRefused',
  'ClientAuthMissing',
  'ClientAuthWrong',
])
/** The onion was reached, and nothing answered behind it. SOCKS has only 0x01 for that. */
const BACKEND: ReadonlySet<string> = new Set(['GeneralFailure', 'BackendClosed'])

const ADDRESS = /^([a-z2-7]{55}d)\.onion$/

/**
 * What another daemon is to look at of an onion; undefined while there is nothing to be seen. While nobody knows how its
 * own tor is, others go on looking.
 */
export function watchPlan({ metadata, spec, status }: OnionService): WatchPlan | undefined {
  const address = ADDRESS.exec(status?.hostname ?? '')?.[1]
  const port = spec.ports[0]?.virtualPort
  const { enabled = true, http, intervalSeconds = WATCH_EVERY.usual } = spec.probe ?? {}
  if (address === undefined || port === undefined || !enabled) return undefined
  if (metadata.deletionTimestamp !== undefined) return undefined
  const published = findCondition(status?.conditions, 'Published')
  if (published === undefined || !canBeSeen(published)) return undefined
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    address,
    port,
    ...(spec.clientAuthorization === undefined ? {} : { private: true }),
    ...(http === undefined ? {} : { http: { path: http.path } }),
    every: intervalSeconds,
  }
}

function canBeSeen({ status, reason }: ConditionInput | Condition): boolean {
  return status === 'True' || (status === 'Unknown' && reason === Reason.AgentSilent)
}

/** The condition Reachable. False only where it is certain: Ready depends on it then. */
export function reachable(
  onion: ObservedOnion,
  { prober }: Observed,
  published: ConditionInput,
  backend: ConditionInput,
): ConditionInput {
  const type = 'Reachable'
  const unknown = (reason: string, message: string): ConditionInput => ({
    type,
    status: 'Unknown',
    reason,
    message,
  })
  const { name } = onion.object.metadata
  if (onion.object.spec.probe?.enabled === false) {
    return unknown(Reason.ProbeDisabled, 'spec.probe.enabled is false: nobody looks')
  }
  if (!canBeSeen(published)) {
    return unknown(Reason.NotPublished, 'it is not published: see Published')
  }
  // Whether one is not there, or only silent, an operator that was just started could not say: so it is one and the same.
  if (prober === undefined || prober.silent) {
    const message = 'no other namespace has a TorDaemon that is connected, so nobody can look from outside'
    return unknown(Reason.NoProber, message)
  }
  const { daemon } = prober
  const state = prober.watched.get(name)
  const address = onion.key.state === 'valid' ? onion.key.address : undefined
  if (state === undefined || state.address !== address || state.reachable === undefined) {
    return unknown(Reason.ProbePending, `TorDaemon ${daemon} has not looked at it yet, or not often enough`)
  }
  if (state.reachable) {
    // Who looks may have a key, for a proxy of its own.
    return onion.object.spec.clientAuthorization === undefined || state.reason === undefined
      ? { type, status: 'True', reason: Reason.Reached, message: `the tor of TorDaemon ${daemon} reaches it` }
      : {
          type,
          status: 'True',
          reason: 'DescriptorFound',
          message: `the tor of TorDaemon ${daemon} finds its descriptor; no more can be seen without a client's key`,
        }
  }
  return unreachable(state, prober, backend)
}

function unreachable(state: WatchedState, prober: ObservedProber, backend: ConditionInput): ConditionInput {
  const type = 'Reachable'
  const { reason = 'ProbeFailed', message = 'no reason was given' } = state
  const seen = `seen from TorDaemon ${prober.daemon}: ${message}`
  if (BACKEND.has(reason) || (backend.status === 'False' && HEALABLE.has(reason))) {
    const why = backend.status === 'False' ? 'its backend is not ready, see BackendReady' : seen
    return { type, status: 'False', reason: Reason.BackendUnreachable, message: why }
  }
  if (reason === 'PageFailed') return { type, status: 'False', reason, message: seen }
  if (!HEALABLE.has(reason) || !isTrusted(state, prober)) {
    return {
      type,
      status: 'Unknown',
      reason: Reason.ProberSuspect,
      message: `TorDaemon ${prober.daemon} cannot reach it, which says more of that daemon: it reaches nothing else either, or failed by itself (${message})`,
    }
  }
  return { type, status: 'False', reason, message: seen }
}

/**
 * Whether a failure is the onion's rather than the looker's: it reaches somebody else, or its tor could build a circuit
 * then and all that it does not reach is of one place. (With a wrong clock it has circuits, and finds nobody.)
 */
function isTrusted({ circuits }: WatchedState, { reaches, places }: ObservedProber): boolean {
  return reaches || (circuits === true && places < 2)
}
