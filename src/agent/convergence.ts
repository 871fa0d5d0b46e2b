export interface ConvergenceOptions<Live> {
  /** Brings it one pass nearer to what is wished. Whoever asks for another look meanwhile gets another pass. */
  converge(live: Live): Promise<void>
  /**
   * What a pass threw, of a process that is still the one.
   *
   * @returns milliseconds after which to try again; undefined: what is to come will ask for it
   */
  failed(error: unknown): number | undefined
  /** After the last pass of several, and where there is nothing to bring anywhere. */
  settled?(): Promise<void> | void
}

/**
 * Brings a live process to what is wished of it, by one run at a time, however often and whenever it is asked for: what
 * is asked for during a run is done by that run.
 */
export class Convergence<Live> {
  readonly #options: ConvergenceOptions<Live>
  #live: Live | undefined
  #due = false
  #running: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(options: ConvergenceOptions<Live>) {
    this.#options = options
  }

  /** What it works on; undefined while there is none. */
  get live(): Live | undefined {
    return this.#live
  }

  get stopped(): boolean {
    return this.#stopped
  }

  /** A process that was just got hold of, or another way to the same. */
  attach(live: Live): Promise<void> {
    this.#live = live
    return this.look()
  }

  detach(): void {
    this.#live = undefined
    clearTimeout(this.#timer)
  }

  /** Something may have to be done. Resolves once it is, as far as it can be. */
  look(): Promise<void> {
    this.#due = true
    clearTimeout(this.#timer)
    if (!this.#stopped) this.#running ??= this.#run()
    return this.idle()
  }

  /** Looks after so many milliseconds, unless something else asks for it before; undefined: it waits for that. */
  lookAfter(milliseconds: number | undefined): void {
    clearTimeout(this.#timer)
    if (milliseconds === undefined || this.#stopped) return
    this.#timer = setTimeout(() => void this.look(), milliseconds)
    this.#timer.unref()
  }

  /** Begins no further pass. */
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  /** Resolves when no pass is running. */
  async idle(): Promise<void> {
    await this.#running
  }

  async #run(): Promise<void> {
    // So that `look` has the promise before this may end.
    await null
    try {
      do {
        await this.#passes()
        await this.#options.settled?.()
      } while (this.#due && this.#live !== undefined && !this.#stopped)
    } finally {
      // In the same breath as the look at what is due: nothing that becomes due is missed.
      this.#running = undefined
    }
  }

  async #passes(): Promise<void> {
    while (this.#due && !this.#stopped) {
      this.#due = false
      const live = this.#live
      if (live === undefined) return
      try {
        await this.#options.converge(live)
      } catch (error) {
        if (this.#live !== live) continue
        const again = this.#options.failed(error)
        if (again !== undefined) this.lookAfter(again)
      }
    }
  }
}
