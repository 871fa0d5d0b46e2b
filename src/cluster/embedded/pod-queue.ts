const FIRST_RETRY = 100
const LONGEST_RETRY = 10_000

/** Runs work by key: one at a time a key, keys side by side, many asks as one, failures again with back-off. */
export class KeyQueue {
  readonly #work: (key: string) => Promise<void>
  readonly #failed: (key: string, error: unknown) => void
  readonly #running = new Map<string, Promise<void>>()
  readonly #again = new Set<string>()
  readonly #retries = new Map<string, NodeJS.Timeout>()
  readonly #failures = new Map<string, number>()
  #closed = false

  constructor(work: (key: string) => Promise<void>, failed: (key: string, error: unknown) => void) {
    this.#work = work
    this.#failed = failed
  }

  add(key: string): void {
    if (this.#closed) return
    clearTimeout(this.#retries.get(key))
    this.#retries.delete(key)
    if (this.#running.has(key)) this.#again.add(key)
    else this.#running.set(key, this.#run(key))
  }

  /** Takes no more work, and waits for what runs. */
  async close(): Promise<void> {
    this.#closed = true
    for (const timer of this.#retries.values()) clearTimeout(timer)
    this.#retries.clear()
    this.#again.clear()
    await Promise.all(this.#running.values())
  }

  async #run(key: string): Promise<void> {
    do {
      this.#again.delete(key)
      // A burst of changes in one turn is one piece of work.
      await Promise.resolve()
      try {
        await this.#work(key)
        this.#failures.delete(key)
      } catch (error) {
        this.#failed(key, error)
        this.#retryLater(key)
      }
    } while (this.#again.has(key))
    this.#running.delete(key)
  }

  #retryLater(key: string): void {
    if (this.#closed || this.#again.has(key)) return
    const failures = this.#failures.get(key) ?? 0
    this.#failures.set(key, failures + 1)
    const delay = Math.min(LONGEST_RETRY, FIRST_RETRY * 2 ** Math.min(failures, 10))
    this.#retries.set(
      key,
      setTimeout(() => this.add(key), delay * (0.5 + Math.random() / 2)),
    )
  }
}
