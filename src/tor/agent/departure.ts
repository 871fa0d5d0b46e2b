import { setTimeout as pause } from 'node:timers/promises'
import { messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import { readCircuits } from '../control/circuits.ts'

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
  /**
   * Lets nobody in any more, and keeps the visitors of these onions; called at every look. Onions that are `held` are
   * left for the next look: tor would drop who is on the way to them. Returns how many that were.
   */
  withdraw(visited: ReadonlySet<string>, held: ReadonlySet<string>): Promise<number>
  log: Logger
  /** What streams have beyond the linger; default 10 s. */
  drainMs?: number
  /** It counts as quiet when nothing ran for so long: a visitor may be about to send; default 2 s. */
  quietMs?: number
  /** Between two looks at the circuits; default 500 ms. */
  sweepMs?: number
  /** So long a moment is looked for in which nobody is on the way; default 5 s. */
  holdMs?: number
}

export interface Visitors {
  /** Addresses of the onions that they are at, or on their way to. */
  visited: Set<string>
  /** Addresses of the onions to which somebody was let in and is not connected yet. */
  connecting: Set<string>
}

/** @param status GETINFO circuit-status */
export function visitors(status: string): Visitors {
  const found: Visitors = { visited: new Set(), connecting: new Set() }
  for (const { state, purpose, hsState, onion } of readCircuits(status)) {
    if (state === 'CLOSED' || state === 'FAILED' || purpose !== 'HS_SERVICE_REND') continue
    found.visited.add(onion)
    if (hsState !== 'HSSR_JOINED') found.connecting.add(onion)
  }
  return found
}

/** Between two looks while an onion is held. */
const HELD_MS = 25

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
    const { quietMs = 2_000, sweepMs = 500, holdMs = 5_000, streams, log } = this.#options
    const ended = this.#ended.signal
    await aborted(AbortSignal.any([this.#retired.signal, ended]))
    if (ended.aborted) return
    log.info({ streams: streams() }, 'retired: the last streams may end')
    const began = performance.now()
    let busyAt = began
    for (let look = 1; !ended.aborted; look += 1) {
      const { connecting, held } = await this.#turnAway(performance.now() - began < holdMs)
      if (streams() > 0 || connecting) busyAt = performance.now()
      else if (performance.now() - busyAt >= quietMs) return
      // The second look follows at once: somebody may have come in during the first, and nobody can any more.
      const wait = held ? HELD_MS : sweepMs
      if (look > 1) await pause(wait, undefined, { signal: ended }).catch(() => {})
    }
  }

  /**
   * tor drops the rendezvous that it has not reached yet with the onion (hs_service.c, close_service_rp_circuits), and
   * their visitors wait half a minute: so an onion is withdrawn in a moment in which it has none.
   */
  async #turnAway(hold: boolean): Promise<{ connecting: boolean; held: boolean }> {
    try {
      const status = await this.#options.circuits()
      if (status === undefined || this.#ended.signal.aborted) return { connecting: false, held: false }
      const { visited, connecting } = visitors(status)
      const held = await this.#options.withdraw(visited, hold ? connecting : new Set())
      return { connecting: connecting.size > 0, held: held > 0 }
    } catch (error) {
      this.#options.log.debug({ error: messageOf(error) }, 'tor cannot be asked for its circuits')
      return { connecting: false, held: false }
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
