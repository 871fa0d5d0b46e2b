import type { OutsideCall } from '../../controller/plan.ts'
import { messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import { fetchBridges } from '../bridges/distributor.ts'
import type { FetchResult } from '../bridges/pacing.ts'

/** Not to be asked again so soon by one daemon, whatever became of what it was told. */
const LEAST_PAUSE_MS = 60_000

/**
 * Fetches bridges for daemons, one after the other: distributors count what comes from one address. What came of a fetch
 * is kept for the next plan, which takes it in once.
 */
export class BridgeFetches {
  readonly #log: Logger
  readonly #onResult: (daemon: string) => void
  readonly #results = new Map<string, FetchResult>()
  readonly #last = new Map<string, number>()
  readonly #closing = new AbortController()
  #queue: Promise<void> = Promise.resolve()

  constructor(log: Logger, onResult: (daemon: string) => void) {
    this.#log = log
    this.#onResult = onResult
  }

  result(daemon: string): FetchResult | undefined {
    return this.#results.get(daemon)
  }

  forget(daemon: string): void {
    this.#results.delete(daemon)
    this.#last.delete(daemon)
  }

  /** Returns at once: a distributor may take its time. */
  call({ with: { daemon = '', source = '', asked = '', transport = '' } }: OutsideCall): void {
    const now = performance.now()
    const last = this.#last.get(daemon)
    if (last !== undefined && now - last < LEAST_PAUSE_MS) return
    this.#last.set(daemon, now)
    this.#queue = this.#queue.then(async () => {
      if (this.#closing.signal.aborted) return
      try {
        const signal = this.#closing.signal
        const outcome = await fetchBridges(source, [transport], { signal })
        this.#results.set(daemon, { asked: Number(asked), ...outcome })
        const found =
          'failure' in outcome ? { reason: outcome.failure.reason } : { bridges: outcome.bridges.length }
        this.#log.info({ daemon, ...found }, 'bridges were fetched')
        this.#onResult(daemon)
      } catch (error) {
        this.#log.debug({ daemon, error: messageOf(error) }, 'bridges were not fetched')
      }
    })
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#queue
  }
}
