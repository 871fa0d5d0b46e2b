import type { QueueOptions } from '../../src/controller/queue.ts'

/** How the newest turn of each key of a controller ended. */
export class Turns {
  /** For its queue: one worker, so that what is told belongs together. */
  readonly queue: QueueOptions
  readonly #newest = new Map<string, string>()
  #writes = 0

  constructor() {
    let running = ''
    let writes = 0
    this.queue = {
      concurrency: 1,
      observer: {
        queued: (key) => this.#newest.set(key, 'waits'),
        started: (key) => {
          running = key
          writes = 0
        },
        wrote: (count) => {
          writes += count
          this.#writes += count
        },
        finished: (_key, result) =>
          void this.#newest.set(running, result === 'error' ? 'failed' : `${writes} writes`),
      },
    }
  }

  /** Of all turns. */
  get writes(): number {
    return this.#writes
  }

  /** Which of the keys did not end with a turn that had nothing to write, a line each. */
  unsettled(keys: readonly string[]): string[] {
    return keys
      .map((key) => `${key}: ${this.#newest.get(key) ?? 'no turn'}`)
      .filter((line) => !line.endsWith(': 0 writes'))
  }
}
