/** Something that wants to be looked at about four times a second. */
export interface Spoke {
  /** @param now monotonic milliseconds (`performance.now()`) */
  tick(now: number): void
}

const TICK_MS = 250
const spokes = new Set<Spoke>()
let interval: NodeJS.Timeout | undefined

/**
 * One coarse timer for every connection of the process: limits of seconds need no timer each, and thousands of
 * connections cost one wake-up every 250 ms. It never keeps the process alive and stops when nobody is on it.
 */
export function watch(spoke: Spoke): void {
  spokes.add(spoke)
  interval ??= setInterval(turn, TICK_MS).unref()
}

/** Takes it off again; a spoke that isn't on the wheel is no mistake. */
export function unwatch(spoke: Spoke): void {
  spokes.delete(spoke)
}

function turn(): void {
  // Stopped here rather than in unwatch(), so that a stream of short connections doesn't restart the timer each time.
  if (spokes.size === 0) {
    clearInterval(interval)
    interval = undefined
    return
  }
  const now = performance.now()
  for (const spoke of spokes) spoke.tick(now)
}
