import { ApiError } from './api-error.ts'
import type { BackoffLimits } from './backoff.ts'

/** What a failed request or watch of a reflector asks for. */
export interface Failure {
  /** The server no longer knows the version that was asked for: list again, at once. */
  expired: boolean
  /** To go on from the same version would fail again, or miss something: list again. */
  stuck: boolean
  limits: BackoffLimits
  /** Milliseconds that the server asks to wait. */
  least: number
}

/**
 * Nobody answered: refused, reset, torn; or somebody says that the server is not there yet (503). Mostly a server that
 * restarts, so it is tried often enough to be back within 2 s of it, and less often only when it stays away.
 */
const UNANSWERED: BackoffLimits = { early: 1_000, late: 30_000 }
/** A server that starts asks for 5 s, and mostly needs a fraction of that. */
const STARTING_LEAST = 1_000
/** A server that has too much to do, or is broken. */
const REFUSED: BackoffLimits = { early: 30_000, late: 30_000 }
/** No permission, no such kind: somebody is about to put that right, and such an answer is cheap. */
const MISSING: BackoffLimits = { early: 1_000, late: 5_000 }
/** The server would send the same line again. */
const UNREADABLE: ReadonlySet<string> = new Set(['WatchLineTooLong', 'WatchLineInvalid'])

/** @param silent of a watch that the server took up, and that told nothing before it failed */
export function failureOf(error: unknown, silent: boolean): Failure {
  if (!(error instanceof ApiError)) return { expired: false, stuck: false, limits: UNANSWERED, least: 0 }
  const { code, status, reason, retryAfter } = error
  const missing = code === 'NotFound' || code === 'Forbidden'
  const starting = status === 503
  return {
    expired: code === 'Gone',
    // A kind that was missing comes back as another one, whose versions tell nothing of the deletions before. And a
    // server that fails within a watch from one version may do so for ever: its store was compacted to the very event
    // that comes next, and what the object was before is gone.
    stuck: code === 'NotFound' || code === 'Invalid' || UNREADABLE.has(reason) || (silent && status === 500),
    limits: missing ? MISSING : status >= 400 && !starting ? REFUSED : UNANSWERED,
    least: Math.min(retryAfter ?? 0, starting ? STARTING_LEAST : Number.POSITIVE_INFINITY),
  }
}
