import { randomBytes } from 'node:crypto'
import { messageOf } from '../../core/errors.ts'
import { SocksError } from '../../relay/socks-error.ts'
import type { ProxyPlan, ProxyTarget } from '../contract.ts'

/**
 * Opens one stream to the target through a circuit of its own, and closes it. `extended`: over the port that says
 * more of a failure.
 *
 * @throws SocksError
 */
export type ProbeAttempt = (
  target: ProxyTarget,
  options: { username: string; extended: boolean; signal: AbortSignal },
) => Promise<void>

export interface ProbesOptions {
  attempt: ProbeAttempt
  onChange(): void
  /** Between probes of a target that is reachable; default 60 s. */
  intervalMs?: number
  /** After its first failure; doubles up to the interval. Default 5 s. */
  retryMs?: number
  /** Probes at a time; default 3. */
  parallel?: number
  /** 0 to below 1; for the jitter. */
  random?: () => number
}

export interface ProbeResult {
  reachable: boolean
  reason?: string
  message?: string
  /** Milliseconds since the epoch. */
  probed: number
}

interface Entry {
  target: ProxyTarget
  failures: number
  timer?: NodeJS.Timeout
  result?: ProbeResult
  abort: AbortController
}

/** Says of every target whether a visitor would reach it: by doing what a visitor does. */
export class Probes {
  readonly #options: ProbesOptions
  readonly #entries = new Map<string, Entry>()
  readonly #queue: Entry[] = []
  #active = 0
  #on = false

  constructor(options: ProbesOptions) {
    this.#options = options
  }

  want(proxies: readonly ProxyPlan[]): void {
    const wanted = new Map(
      proxies.flatMap((proxy) => proxy.targets.map((target) => [`${proxy.name}/${target.name}`, target])),
    )
    for (const [key, entry] of this.#entries) {
      const target = wanted.get(key)
      if (target?.onion === entry.target.onion && target.port === entry.target.port) continue
      stop(entry)
      this.#entries.delete(key)
    }
    for (const [key, target] of wanted) {
      if (this.#entries.has(key)) continue
      const entry: Entry = { target, failures: 0, abort: new AbortController() }
      this.#entries.set(key, entry)
      if (this.#on) this.#schedule(entry, 0)
    }
    this.#options.onChange()
  }

  /** Asks soon whether an onion is reachable: something changed on the way to it. */
  again(onion: string): void {
    for (const entry of this.#entries.values()) {
      if (!entry.target.onion.endsWith(`${onion}.onion`)) continue
      stop(entry)
      entry.failures = 0
      entry.abort = new AbortController()
      if (this.#on) this.#schedule(entry, 0)
    }
  }

  /** tor can carry streams, or cannot: then nothing is known of any target. */
  enable(on: boolean): void {
    if (this.#on === on) return
    this.#on = on
    // Whoever waits for a free place would be asked though tor is down, and twice once it is up again.
    this.#queue.length = 0
    for (const entry of this.#entries.values()) {
      stop(entry)
      delete entry.result
      entry.failures = 0
      entry.abort = new AbortController()
      if (on) this.#schedule(entry, Math.min(2_000, 100 * this.#entries.size) * this.#random())
    }
    this.#options.onChange()
  }

  result(proxy: string, target: string): ProbeResult | undefined {
    return this.#entries.get(`${proxy}/${target}`)?.result
  }

  close(): void {
    this.#on = false
    for (const entry of this.#entries.values()) stop(entry)
    this.#entries.clear()
  }

  #schedule(entry: Entry, afterMs: number): void {
    entry.timer = setTimeout(() => {
      this.#queue.push(entry)
      this.#next()
    }, afterMs)
  }

  #next(): void {
    while (this.#active < (this.#options.parallel ?? 3)) {
      const entry = this.#queue.shift()
      if (entry === undefined) return
      const { signal } = entry.abort
      if (signal.aborted) continue
      this.#active += 1
      void this.#probe(entry, signal).finally(() => {
        this.#active -= 1
        this.#next()
      })
    }
  }

  async #probe(entry: Entry, signal: AbortSignal): Promise<void> {
    const result = await this.#result(entry.target, signal)
    if (signal.aborted) return
    entry.result = { ...result, probed: Date.now() }
    entry.failures = result.reachable ? 0 : entry.failures + 1
    const { intervalMs = 60_000, retryMs = 5_000 } = this.#options
    const pause = result.reachable
      ? intervalMs
      : Math.min(intervalMs, retryMs * 2 ** Math.min(entry.failures - 1, 16))
    this.#schedule(entry, pause * (0.8 + 0.4 * this.#random()))
    this.#options.onChange()
  }

  async #result(target: ProxyTarget, signal: AbortSignal): Promise<Omit<ProbeResult, 'probed'>> {
    const { attempt } = this.#options
    try {
      await attempt(target, { username: fresh(), extended: false, signal })
      return { reachable: true }
    } catch (first) {
      if (signal.aborted) return { reachable: false }
      try {
        await attempt(target, { username: fresh(), extended: true, signal })
        return { reachable: true }
      } catch (second) {
        return { reachable: false, ...explain(first, second) }
      }
    }
  }

  #random(): number {
    return (this.#options.random ?? Math.random)()
  }
}

/** The second attempt knows the cause better, unless it got no reply at all. */
function explain(first: unknown, second: unknown): { reason: string; message: string } {
  const error =
    second instanceof SocksError && (second.reply >= 0 || !(first instanceof SocksError)) ? second : first
  if (!(error instanceof SocksError)) return { reason: 'ProbeFailed', message: messageOf(error) }
  const code = `0x${error.reply.toString(16).padStart(2, '0')}`
  const told = error.reply < 0 || error.message.toLowerCase().includes(code)
  return { reason: error.reason, message: told ? error.message : `${error.message} (SOCKS reply ${code})` }
}

function fresh(): string {
  return `probe-${randomBytes(8).toString('hex')}`
}

function stop(entry: Entry): void {
  clearTimeout(entry.timer)
  entry.abort.abort()
}
