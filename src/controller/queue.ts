/**
 * A work queue as controllers need it: a key waits at most once, one key is worked on by one worker at a time, a
 * key that comes again while it is worked on runs once more afterwards, and failures back off with jitter.
 */
export interface QueueOptions {
  /** Keys worked on at the same time. */
  concurrency?: number
  /** First back-off after a failure, in milliseconds; doubles up to `maxBackoff`. */
  minBackoff?: number
  maxBackoff?: number
  random?: () => number
}

export class WorkQueue {
  readonly #work: (key: string) => Promise<number | undefined>
  readonly #failed: (key: string, error: unknown) => void
  readonly #options: Required<QueueOptions>
  readonly #ready = new Set<string>()
  readonly #running = new Set<string>()
  readonly #again = new Set<string>()
  readonly #later = new Map<string, { at: number; timer: NodeJS.Timeout }>()
  readonly #failures = new Map<string, number>()
  #idle: (() => void)[] = []
  #closed = false

  /**
   * @param work  works on a key; returns milliseconds after which to look again, or undefined
   * @param failed told of each failure, before the back-off
   */
  constructor(
    work: (key: string) => Promise<number | undefined>,
    failed: (key: string, error: unknown) => void,
    options: QueueOptions = {},
  ) {
    this.#work = work
    this.#failed = failed
    this.#options = {
      concurrency: options.concurrency ?? 4,
      minBackoff: options.minBackoff ?? 200,
      maxBackoff: options.maxBackoff ?? 60_000,
      random: options.random ?? Math.random,
    }
  }

  add(key: string): void {
    if (this.#closed) return
    this.#cancelLater(key)
    if (this.#running.has(key)) this.#again.add(key)
    else this.#ready.add(key)
    this.#pump()
  }

  /** Adds a key after a while; the earliest of several times counts. */
  addAfter(key: string, milliseconds: number): void {
    if (this.#closed) return
    const at = Date.now() + milliseconds
    const planned = this.#later.get(key)
    if (planned !== undefined && planned.at <= at) return
    this.#cancelLater(key)
    const timer = setTimeout(() => {
      this.#later.delete(key)
      this.add(key)
    }, milliseconds)
    timer.unref()
    this.#later.set(key, { at, timer })
  }

  /** Stops taking work; resolves once what runs has ended. */
  close(): Promise<void> {
    this.#closed = true
    this.#ready.clear()
    this.#again.clear()
    for (const { timer } of this.#later.values()) clearTimeout(timer)
    this.#later.clear()
    if (this.#running.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  get length(): number {
    return this.#ready.size + this.#running.size
  }

  #cancelLater(key: string): void {
    const planned = this.#later.get(key)
    if (planned === undefined) return
    clearTimeout(planned.timer)
    this.#later.delete(key)
  }

  #pump(): void {
    for (const key of this.#ready) {
      if (this.#running.size >= this.#options.concurrency) return
      this.#ready.delete(key)
      this.#running.add(key)
      void this.#run(key)
    }
  }

  async #run(key: string): Promise<void> {
    // A turn of the event loop between the change and the work lets a burst of changes become one.
    await new Promise((resolve) => setImmediate(resolve))
    try {
      const again = await this.#work(key)
      this.#failures.delete(key)
      if (again !== undefined) this.#after(key, again)
    } catch (error) {
      this.#failed(key, error)
      const failures = (this.#failures.get(key) ?? 0) + 1
      this.#failures.set(key, failures)
      const full = Math.min(this.#options.maxBackoff, this.#options.minBackoff * 2 ** (failures - 1))
      this.#after(key, full * (0.5 + this.#options.random() / 2))
    }
    this.#running.delete(key)
    if (this.#again.delete(key) && !this.#closed) this.add(key)
    this.#pump()
    if (this.#running.size === 0 && this.#closed) {
      for (const resolve of this.#idle) resolve()
      this.#idle = []
    }
  }

  #after(key: string, milliseconds: number): void {
    if (!this.#again.has(key)) this.addAfter(key, milliseconds)
  }
}
