import type { Cache } from '../cluster/cluster.ts'
import { PosternError } from '../core/errors.ts'
import type { Resource } from '../core/resource.ts'

/**
 * The value that an object of a cache has once it has one. Nothing is polled.
 *
 * @param read undefined: not yet
 * @param limit milliseconds
 * @throws PosternError `WaitTimeout`, or the reason of the signal
 */
export function waitFor<T extends Resource, R>(
  cache: Cache<T>,
  key: string,
  read: (object: T) => R | undefined,
  { limit, signal }: { limit: number; signal: AbortSignal },
): Promise<R> {
  return new Promise((resolve, reject) => {
    let stop: (() => void) | undefined
    let done = false
    const end = (finish: () => void): void => {
      if (done) return
      done = true
      clearTimeout(timer)
      signal.removeEventListener('abort', aborted)
      stop?.()
      finish()
    }
    const aborted = (): void => end(() => reject(signal.reason))
    const timer = setTimeout(
      () => end(() => reject(new PosternError('WaitTimeout', `not within ${limit / 1000} s`))),
      limit,
    )
    signal.addEventListener('abort', aborted)
    if (signal.aborted) aborted()
    if (done) return
    stop = cache.subscribe((change) => {
      if (change.key !== key || change.after === undefined) return
      const value = read(change.after)
      if (value !== undefined) end(() => resolve(value))
    })
    // It may have been there already: subscribe calls back before it returns the way to stop.
    if (done) stop()
  })
}
