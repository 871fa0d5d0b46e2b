/** A signal that fires after a time, or with another signal, until it is told to end. */
export class Deadline {
  readonly #controller = new AbortController()
  readonly #timer: NodeJS.Timeout
  readonly #signal: AbortSignal | undefined
  readonly #abort: () => void

  /**
   * @param time   milliseconds
   * @param reason of the signal when the time is up
   */
  constructor(time: number, reason: Error, signal?: AbortSignal) {
    this.#signal = signal
    this.#abort = () => this.#controller.abort(signal?.reason)
    this.#timer = setTimeout(() => this.#controller.abort(reason), time)
    if (signal?.aborted) this.#abort()
    else signal?.addEventListener('abort', this.#abort, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#signal?.removeEventListener('abort', this.#abort)
  }
}
