import type { OnionPlan, OnionState } from '../contract.ts'
import type { OnionKeyCheck } from './onion-keys.ts'
import type { TrackedOnion } from './uploads.ts'

export interface OnionFacts {
  live: TrackedOnion | undefined
  key: OnionKeyCheck
  failure: { reason: string; message: string } | undefined
  backend: { connections: number; error?: string }
  /** There is a tor to add it to. */
  attached: boolean
}

/** What the report says of one onion. One that tor has is never called failed, whatever became of its key. */
export function onionState(onion: OnionPlan, facts: OnionFacts): OnionState {
  const { live, backend } = facts
  return {
    name: onion.name,
    address: onion.address,
    ...stateOf(facts),
    uploadsAsked: live?.uploadsAsked ?? 0,
    uploadsAcknowledged: live?.uploadsAcknowledged ?? 0,
    ...(live?.lastUploadTime === undefined ? {} : { lastUpload: live.lastUploadTime }),
    connections: backend.connections,
    ...(backend.error === undefined ? {} : { backendError: backend.error }),
  }
}

function stateOf({
  live,
  key,
  failure,
  attached,
}: OnionFacts): Pick<OnionState, 'state' | 'reason' | 'message'> {
  if (live?.published) return { state: 'published' }
  if (live !== undefined) {
    if (live.failure !== undefined) {
      const message = `a directory refused the descriptor (${live.failure}); it is published anew if none takes it`
      return { state: 'added', reason: 'UploadRefused', message }
    }
    const message =
      live.uploadsAsked === 0
        ? 'tor has not begun to upload the descriptor'
        : `no directory acknowledged one of ${live.uploadsAsked} uploads yet`
    return { state: 'added', reason: 'UploadPending', message }
  }
  if (!key.ok) return { state: 'failed', reason: key.reason, message: key.message }
  if (failure !== undefined) return { state: 'failed', reason: failure.reason, message: failure.message }
  return attached
    ? { state: 'waiting', reason: 'Queued', message: 'older onions of this daemon are published first' }
    : { state: 'waiting', reason: 'TorNotRunning', message: 'it is added as soon as tor runs' }
}
