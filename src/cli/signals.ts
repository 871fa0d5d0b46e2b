import { PosternError } from '../core/errors.ts'

export interface Stop {
  /** Aborts at the first SIGINT, SIGTERM or SIGHUP. */
  readonly signal: AbortSignal
  /** Resolves then. */
  readonly asked: Promise<void>
  dispose(): void
}

/** Milliseconds in which a second signal is taken for the first one's echo. */
const ECHO = 500

/**
 * The first signal asks for an orderly end, a second one ends at once.
 *
 * @param atOnce called before the end at once, to take along what would stay behind
 */
export function onStop(atOnce: () => void = () => {}): Stop {
  const controller = new AbortController()
  const { promise, resolve } = Promise.withResolvers<void>()
  let first = 0
  const stop = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) {
      // make, npm and timeout pass on a signal that the terminal has sent to all of us already.
      if (performance.now() - first < ECHO) return
      atOnce()
      process.exit(name === 'SIGTERM' ? 143 : 130)
    }
    first = performance.now()
    controller.abort(new PosternError('Stopped', 'stopped by a signal'))
    resolve()
  }
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const name of names) process.on(name, stop)
  // A signal handler alone does not keep a process, and neither does a folder that is watched.
  const alive = setInterval(() => {}, 0x7fff_ffff)
  return {
    signal: controller.signal,
    asked: promise,
    dispose() {
      clearInterval(alive)
      for (const name of names) process.off(name, stop)
    },
  }
}
