import type { ConditionInput, ConditionStatus } from '../../core/conditions.ts'
import { DEFAULT_DAEMON } from '../api/group.ts'
import { Reason } from '../api/reasons.ts'
import type { OnionState, TorReport } from '../contract.ts'
import { admitted, clientSecretName } from './client-keys.ts'
import type { Observed, ObservedOnion } from './observed.ts'
import { keySecretName } from './onion-keys.ts'
import { reachable } from './reachability.ts'
import { withReady } from './status.ts'

/** A descriptor's lifetime (HS_DESC_DEFAULT_LIFETIME): older uploads are found by nobody. Milliseconds. */
export const DESCRIPTOR_LIFETIME: number = 3 * 60 * 60 * 1000

/** Conditions of an OnionService, in the order in which they are shown. */
export function onionConditions(onion: ObservedOnion, observed: Observed, now: number): ConditionInput[] {
  const key = keyValid(onion, observed)
  const state = onionState(onion, observed.view?.report)
  const auth = authConfigured(onion, observed)
  const backend = backendReady(onion, state)
  const fails = { key, auth: admitted(onion.clients)?.length === 0 ? auth : undefined }
  const found = published(observed, state, fails, now)
  return withReady(
    [key, ...(auth === undefined ? [] : [auth]), backend, found],
    'the onion can be found and its backend is ready',
    [reachable(onion, observed, found, backend)],
  )
}

export function onionState(onion: ObservedOnion, report: TorReport | undefined): OnionState | undefined {
  if (onion.key.state !== 'valid') return undefined
  const { address } = onion.key
  return report?.onions.find((one) => one.name === onion.object.metadata.name && one.address === address)
}

function keyValid(onion: ObservedOnion, observed: Observed): ConditionInput {
  const type = 'KeyValid'
  const { key, rival } = onion
  if (key.state === 'pending') {
    return { type, status: 'Unknown', reason: Reason.Pending, message: 'its Secret was not read yet' }
  }
  if (key.state === 'generate') {
    const name = keySecretName(onion.object)
    const refused = observed.refused.find(({ ref }) => ref.kind === 'Secret' && ref.name === name)
    if (refused?.code === 'AlreadyExists') {
      return {
        type,
        status: 'False',
        reason: Reason.NameTaken,
        message: `Secret ${name} is there already and was not made for this onion; name it in spec.privateKeySecret to use its key, or delete it to have one made`,
      }
    }
    if (refused !== undefined) {
      return { type, status: 'False', reason: Reason.ObjectRefused, message: refused.message }
    }
    return { type, status: 'Unknown', reason: Reason.Pending, message: 'the key is being made' }
  }
  if (key.state === 'bad') return { type, status: 'False', reason: key.reason, message: key.message }
  if (rival !== undefined) {
    return {
      type,
      status: 'False',
      reason: Reason.DuplicateKey,
      message: `OnionService ${rival} is older and has the same key, so it alone is published; give this one a key of its own, or delete one of the two`,
    }
  }
  return { type, status: 'True', reason: Reason.KeyLoaded, message: 'the key fits the address' }
}

/** Who may connect; undefined where everybody may. */
function authConfigured({ object, clients }: ObservedOnion, observed: Observed): ConditionInput | undefined {
  if (clients === undefined) return undefined
  const type = 'AuthConfigured'
  const bad = clients.find((client) => client.state === 'bad')
  if (bad?.state === 'bad') return { type, status: 'False', reason: bad.reason, message: bad.message }
  for (const { name } of clients.filter(({ state }) => state === 'generate')) {
    const secret = clientSecretName(object.metadata.name, name)
    const refused = observed.refused.find(({ ref }) => ref.kind === 'Secret' && ref.name === secret)
    if (refused?.code === 'AlreadyExists') {
      const message = `Secret ${secret} is there already and was not made for client ${name}; delete it to have a pair made, or give the client its publicKey`
      return { type, status: 'False', reason: Reason.NameTaken, message }
    }
    if (refused !== undefined) {
      return { type, status: 'False', reason: Reason.ObjectRefused, message: refused.message }
    }
  }
  const made = clients.filter(({ state }) => state === 'valid').length
  if (made < clients.length) {
    return { type, status: 'Unknown', reason: Reason.Pending, message: 'keys of clients are being made' }
  }
  const message = made === 1 ? '1 client may connect' : `${made} clients may connect, and nobody else`
  return { type, status: 'True', reason: Reason.ClientsKnown, message }
}

function backendReady(onion: ObservedOnion, state: OnionState | undefined): ConditionInput {
  const type = 'BackendReady'
  for (const backend of onion.backends) {
    if (!backend.ok) return { type, status: 'False', reason: backend.reason, message: backend.message }
  }
  if (state?.backendError !== undefined) {
    return {
      type,
      status: 'False',
      reason: Reason.BackendUnreachable,
      message: `a visitor came and the backend could not be reached: ${state.backendError}; check that it listens there`,
    }
  }
  return { type, status: 'True', reason: Reason.EndpointsReady, message: 'every port has a ready backend' }
}

function published(
  observed: Observed,
  state: OnionState | undefined,
  { key, auth }: { key: ConditionInput; auth: ConditionInput | undefined },
  now: number,
): ConditionInput {
  const type = 'Published'
  const why = [key, auth].find((one) => one?.status === 'False')
  if (why !== undefined) {
    const message = `it is not published: see ${why.type}`
    return { type, status: 'False', reason: Reason.NotPublished, message }
  }
  const silent = agentSilent(observed)
  if (silent !== undefined) return { type, ...silent }
  if (state === undefined) {
    return { type, status: 'Unknown', reason: Reason.Pending, message: 'the daemon has not taken it up yet' }
  }
  if (state.state === 'failed') {
    return {
      type,
      status: 'False',
      reason: state.reason ?? Reason.NotPublished,
      message: state.message ?? 'the daemon could not publish it',
    }
  }
  if (state.lastUpload !== undefined && now - state.lastUpload >= DESCRIPTOR_LIFETIME) {
    return {
      type,
      status: 'False',
      reason: Reason.DescriptorExpired,
      message: 'the last acknowledged upload of its descriptor is older than 3 hours; see the TorDaemon',
    }
  }
  if (state.state === 'published') {
    return {
      type,
      status: 'True',
      reason: Reason.DescriptorUploaded,
      message: 'a directory of the Tor network acknowledged the descriptor',
    }
  }
  const { tor } = observed.view?.report ?? {}
  return {
    type,
    status: 'False',
    reason: tor?.bootstrapped === true ? Reason.UploadPending : Reason.Bootstrapping,
    message:
      tor?.bootstrapped === true
        ? 'no directory has acknowledged the descriptor yet'
        : `tor is still connecting to the network (${tor?.progress ?? 0} %)`,
  }
}

/** Why the daemon's agent cannot be believed now; undefined while it reports. */
export function agentSilent(
  observed: Observed,
): { status: ConditionStatus; reason: string; message: string } | undefined {
  const { view, daemon, object } = observed
  if (object === undefined && daemon.name !== DEFAULT_DAEMON) {
    return {
      status: 'False',
      reason: Reason.DaemonNotFound,
      message: `TorDaemon ${daemon.name} does not exist in namespace ${daemon.namespace}; create it, or remove spec.daemonRef to use the default one`,
    }
  }
  if (view?.report !== undefined) return undefined
  return refusalOf(observed) ?? { status: 'Unknown', ...whySilent(observed) }
}

/** Why the cluster does not take what a daemon needs; undefined while it does, or may soon. */
export function refusalOf({
  refused,
  proxies,
}: Observed): { status: ConditionStatus; reason: string; message: string } | undefined {
  for (const { ref, code, message } of refused) {
    // Keys of onions and names of proxies' Services are told where they belong.
    const ofProxy = ref.kind === 'Service' && proxies.some(({ object }) => object.metadata.name === ref.name)
    if ((ofProxy && code === 'Taken') || (ref.kind === 'Secret' && code === 'AlreadyExists')) continue
    if (code === 'Taken') return { status: 'False', reason: Reason.NameTaken, message }
    if (code === 'Invalid' || code === 'Forbidden') {
      return { status: 'False', reason: Reason.ObjectRefused, message }
    }
  }
  return undefined
}

function whySilent({ view, pod, object }: Observed): { reason: string; message: string } {
  if (object === undefined) return { reason: Reason.Pending, message: 'the daemon is being made' }
  const waiting = pod?.status?.containerStatuses?.find((one) => one.state?.waiting !== undefined)?.state
    ?.waiting
  if (waiting !== undefined) {
    return {
      reason: Reason.PodNotReady,
      message: `the daemon's pod waits: ${waiting.reason ?? ''} ${waiting.message ?? ''}`.trim(),
    }
  }
  if (pod?.status?.podIP === undefined) {
    return { reason: Reason.Pending, message: "the daemon's pod has not started yet" }
  }
  return {
    reason: Reason.AgentSilent,
    message: `the daemon's agent does not report (${view?.error ?? 'no answer yet'}); see the logs of its pod`,
  }
}
