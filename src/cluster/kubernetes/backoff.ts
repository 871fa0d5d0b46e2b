/** Longest waits of a kind of failure, in milliseconds. */
export interface BackoffLimits {
  /** Within the first minute of waiting. */
  early: number
  /** After that. */
  late: number
}

const FIRST_MS = 100
const EARLY_MS = 60_000

/**
 * Exponential back-off with full jitter: a wait is anything between nothing and a ceiling that doubles from 0.1 s on.
 * What it counts as time is the waits themselves, so it needs no clock.
 */
export class Backoff {
  readonly #random: () => number
  #ceiling = FIRST_MS
  #waited = 0

  /** @param random 0 to 1 */
  constructor(random: () => number = Math.random) {
    this.#random = random
  }

  /**
   * The next wait in milliseconds.
   *
   * @param least what the server asks to wait; it counts even when it is above the limit
   */
  next({ early, late }: BackoffLimits, least = 0): number {
    const ceiling = Math.min(this.#ceiling, this.#waited < EARLY_MS ? early : late)
    const wait = Math.max(least, Math.round(ceiling * this.#random()))
    this.#ceiling = ceiling * 2
    this.#waited += wait
    return wait
  }

  reset(): void {
    this.#ceiling = FIRST_MS
    this.#waited = 0
  }
}
