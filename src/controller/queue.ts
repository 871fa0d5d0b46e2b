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
  observer?: WorkObserver
}

/** How a key's turn ended: done, to be looked at again at a known time, or failed. */
export type WorkResult = 'success' | 'requeue_after' | 'error'

/** Told of what happens in a queue, and of what its controller wrote: for metrics. Must not throw. */
export interface WorkObserver {
  /** Once, for all the workers that there are. */
  opened?(concurrency: number): void
  /** A key waits that did not wait before. */
  queued?(key: string): void
  started?(key: string): void
  finished?(key: string, result: WorkResult): void
  /** A key that failed will come again. */
  retried?(key: string): void
  /** Keys that waited are given up, since the queue is closed. */
  dropped?(keys: readonly string[]): void
  /** Writes to the cluster that a turn took. */
  wrote?(writes: number): void
}

export class WorkQueue {
  readonly #work: (key: string) => Promise<number | undefined>
  readonly #failed: (key: string, error: unknown) => void
  readonly #options: Required<Omit<QueueOptions, 'observer'>>
  readonly #observer: WorkObserver | undefined
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
    this.#observer = options.observer
    this.#observer?.opened?.(this.#options.concurrency)
  }

  add(key: string): void {
    if (this.#closed) return
    this.#cancelLater(key)
    const waiting = this.#running.has(key) ? this.#again : this.#ready
    if (!waiting.has(key)) {
      waiting.add(key)
      this.#observer?.queued?.(key)
    }
    this.#pump()
  }

  /** Adds a key after a while; the earliest of several times counts. */
  addAfter(key: string, milliseconds: number): void {
    if (this.#closed) return
    const at = performance.now() + milliseconds
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
    this.#observer?.dropped?.([...this.#ready, ...this.#again])
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
      this.#observer?.started?.(key)
      void this.#run(key)
    }
  }

  async #run(key: string): Promise<void> {
    let result: WorkResult = 'success'
    // A turn of the event loop between the change and the work lets a burst of changes become one.
    await new Promise((resolve) => setImmediate(resolve))
    try {
      const again = await this.#work(key)
      this.#failures.delete(key)
      if (again !== undefined) {
        result = 'requeue_after'
        this.#after(key, again)
      }
    } catch (error) {
      result = 'error'
      this.#failed(key, error)
      const failures = (this.#failures.get(key) ?? 0) + 1
      this.#failures.set(key, failures)
      const full = Math.min(this.#options.maxBackoff, this.#options.minBackoff * 2 ** (failures - 1))
      this.#observer?.retried?.(key)
      this.#after(key, full * (0.5 + this.#options.random() / 2))
    }
    this.#running.delete(key)
    this.#observer?.finished?.(key, result)
    if (this.#again.delete(key)) {
      this.#cancelLater(key)
      this.#ready.add(key)
    }
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
