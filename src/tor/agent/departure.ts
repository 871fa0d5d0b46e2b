import { setTimeout as pause } from 'node:timers/promises'
import { messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'

/**
 * How an agent goes without a visitor noticing. It serves on until its successor has published the same onions; then
 * it lets nobody in any more, so that visitors who still hold its descriptor are turned away at once and fetch the
 * successor's. (A tor that just ends leaves some of them waiting for a rendezvous that never comes, half a minute and
 * longer.) It ends when nothing runs through it any more.
 */

export interface DepartureOptions {
  /** Longest time for the successor to come, and for running streams to end. */
  lingerMs: number
  /** Connections that run now, of onions and proxies. */
  streams(): number
  /** tor's `circuit-status`; undefined while there is no tor to ask. */
  circuits(): Promise<string | undefined>
  /** Lets nobody in any more, and keeps the visitors of these onions; called at every look. */
  withdraw(visited: ReadonlySet<string>): Promise<void>
  log: Logger
  /** What streams have beyond the linger; default 10 s. */
  drainMs?: number
  /** It counts as quiet when nothing ran for so long: a visitor may be about to send; default 2 s. */
  quietMs?: number
  /** Between two looks at the circuits; default 500 ms. */
  sweepMs?: number
}

export interface Visitors {
  /** Addresses of the onions that they are at, or on their way to. */
  visited: Set<string>
  /** How many were let in and are not connected yet. */
  connecting: number
}

/** Reads `circuit-status` (control-spec). */
export function visitors(status: string): Visitors {
  const found: Visitors = { visited: new Set(), connecting: 0 }
  for (const line of status.split('\n')) {
    const words = line.trim().split(' ')
    if (words[1] === 'CLOSED' || words[1] === 'FAILED' || !words.includes('PURPOSE=HS_SERVICE_REND')) continue
    const onion = words.find((word) => word.startsWith('REND_QUERY='))
    if (onion !== undefined) found.visited.add(onion.slice('REND_QUERY='.length))
    if (!words.includes('HS_STATE=HSSR_JOINED')) found.connecting += 1
  }
  return found
}

export class Departure {
  readonly #options: DepartureOptions
  /** Aborted once nothing is waited for but the streams. */
  readonly #retired = new AbortController()
  readonly #ended = new AbortController()

  constructor(options: DepartureOptions) {
    this.#options = options
  }

  /** The successor is there, or none will come. Before the departure it is only remembered. */
  retire(): void {
    this.#retired.abort()
  }

  /** Ends a departure at once. */
  end(): void {
    this.#ended.abort()
  }

  /** Resolves when the agent may end. Call it once. */
  async run(): Promise<void> {
    const { lingerMs, drainMs = 10_000, log } = this.#options
    const limit = setTimeout(() => {
      log.warn({ streams: this.#options.streams() }, 'running streams are cut: the time to end is over')
      this.end()
    }, lingerMs + drainMs)
    const linger = setTimeout(() => {
      if (this.#retired.signal.aborted) return
      log.warn({}, 'nobody said that a successor serves: the time to wait for it is over')
      this.retire()
    }, lingerMs)
    // A tor that does not answer must not hold up the end.
    await Promise.race([this.#depart(), aborted(this.#ended.signal)])
    clearTimeout(limit)
    clearTimeout(linger)
    this.end()
  }

  async #depart(): Promise<void> {
    const { quietMs = 2_000, sweepMs = 500, streams, log } = this.#options
    const ended = this.#ended.signal
    await aborted(AbortSignal.any([this.#retired.signal, ended]))
    if (ended.aborted) return
    log.info({ streams: streams() }, 'retired: the last streams may end')
    let busyAt = performance.now()
    for (let look = 1; !ended.aborted; look += 1) {
      const connecting = await this.#turnAway()
      if (streams() > 0 || connecting > 0) busyAt = performance.now()
      else if (performance.now() - busyAt >= quietMs) return
      // The second look follows at once: somebody may have come in during the first, and nobody can any more.
      if (look > 1) await pause(sweepMs, undefined, { signal: ended }).catch(() => {})
    }
  }

  /** Returns how many visitors are on their way. */
  async #turnAway(): Promise<number> {
    try {
      const status = await this.#options.circuits()
      if (status === undefined || this.#ended.signal.aborted) return 0
      const { visited, connecting } = visitors(status)
      await this.#options.withdraw(visited)
      return connecting
    } catch (error) {
      this.#options.log.debug({ error: messageOf(error) }, 'tor cannot be asked for its circuits')
      return 0
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
