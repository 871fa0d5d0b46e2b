/** A state that others wait for: it has a revision that grows by each change. */
export interface Revisioned {
  readonly revision: number
  /** The state as JSON text. */
  json(): string
  /** Resolves once the revision is above `after`, or when the signal aborts. Never rejects. */
  changed(after: number, signal: AbortSignal): Promise<void>
}

/**
 * Takes a snapshot of a state whenever it is told that something may have changed, at most one in 20 ms, and
 * gives it a new revision if it differs from the one before.
 */
export class Revisions<T extends object> implements Revisioned {
  readonly #build: () => T
  readonly #coalesceMs: number
  #revision: number
  #text: string
  #value: T
  #timer: NodeJS.Timeout | undefined
  readonly #waiting = new Set<() => void>()

  /**
   * @param build the state as it is now, without its revision
   * @param first first revision; a clock's reading makes the revisions of a restarted process larger than before
   */
  constructor(build: () => T, first: number = Date.now(), coalesceMs = 20) {
    this.#build = build
    this.#coalesceMs = coalesceMs
    this.#revision = first
    this.#value = build()
    this.#text = JSON.stringify(this.#value)
  }

  get revision(): number {
    return this.#revision
  }

  /** The newest snapshot. */
  get value(): T {
    return this.#value
  }

  json(): string {
    return JSON.stringify({ ...this.#value, revision: this.#revision })
  }

  /** Says that something may have changed. */
  touch(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.flush()
    }, this.#coalesceMs)
  }

  /** Takes the snapshot now. */
  flush(): void {
    const value = this.#build()
    const text = JSON.stringify(value)
    if (text === this.#text) return
    this.#text = text
    this.#value = value
    this.#revision += 1
    for (const wake of [...this.#waiting]) wake()
  }

  changed(after: number, signal: AbortSignal): Promise<void> {
    if (this.#revision > after || signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        if (this.#revision <= after && !signal.aborted) return
        this.#waiting.delete(done)
        signal.removeEventListener('abort', done)
        resolve()
      }
      this.#waiting.add(done)
      signal.addEventListener('abort', done)
    })
  }

  close(): void {
    clearTimeout(this.#timer)
  }
}
