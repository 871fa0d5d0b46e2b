import { randomBytes } from 'node:crypto'
import { messageOf } from '../../core/errors.ts'
import { SocksError } from '../../relay/socks-error.ts'

/** What is looked at. */
export interface ProbeTarget {
  /** With `.onion`. */
  onion: string
  port: number
  /** Set: a page is asked for, too. */
  http?: { path: string }
  /** Between probes while it is reachable; default that of the options. */
  everyMs?: number
}

/** What came of an attempt that went through, where there is something to say. */
export interface ProbeAnswer {
  reason?: string
  message?: string
  /** Until it was through, where more was waited for than that. */
  latencyMs?: number
}

/**
 * Opens one stream to the target through a circuit of its own, and closes it. `extended`: over the port that says
 * more of a failure.
 *
 * @throws SocksError, or {@link ProbeFailure} where the target was reached and did not answer as it should
 */
export type ProbeAttempt<T extends ProbeTarget> = (
  target: T,
  options: { username: string; extended: boolean; signal: AbortSignal },
) => Promise<ProbeAnswer | undefined>

/** The target was reached, and then something was wrong. */
export class ProbeFailure extends Error {
  readonly reason: string

  constructor(reason: string, message: string) {
    super(message)
    this.reason = reason
  }
}

export interface ProbesOptions<T extends ProbeTarget> {
  attempt: ProbeAttempt<T>
  /** Something is another; that a probe came out as the one before is no news. */
  onChange(): void
  /** Whether tor gets anywhere at all: asked after a failure. */
  network?: () => Promise<boolean>
  /** Takes a failure for what can be expected of this target. */
  expected?: (target: T, failure: { reason: string; message: string }) => ProbeAnswer | undefined
  /** Between probes of a target that is reachable; default 60 s. */
  intervalMs?: number
  /** After its first failure; doubles up to the interval. Default 5 s. */
  retryMs?: number
  /** Before the first probe of a target; default 0. */
  firstMs?: number
  /** Between the beginnings of two probes, at least; default 0. */
  gapMs?: number
  /** So many failures in a row make a target unreachable; default 1. */
  confirm?: number
  /** Probes at a time; default 3. */
  parallel?: number
  /** 0 to below 1; for the jitter. */
  random?: () => number
}

export interface ProbeResult {
  /** Undefined: it failed, and not often enough yet to say so. */
  reachable?: boolean
  reason?: string
  message?: string
  /** Milliseconds since the epoch. */
  probed: number
  /** Of the newest probe that succeeded. */
  latencyMs?: number
  /** In a row. */
  failures: number
  /** Of a failure: whether tor got anywhere else at that time. */
  network?: boolean
}

interface Entry<T> {
  target: T
  failures: number
  timer?: NodeJS.Timeout
  result?: ProbeResult
  abort: AbortController
}

/** Says of every target whether a visitor would reach it: by doing what a visitor does. */
export class Probes<T extends ProbeTarget = ProbeTarget> {
  readonly #options: ProbesOptions<T>
  readonly #entries = new Map<string, Entry<T>>()
  readonly #queue: Entry<T>[] = []
  #active = 0
  #on = false
  #mayStartAt = 0
  #gap: NodeJS.Timeout | undefined

  constructor(options: ProbesOptions<T>) {
    this.#options = options
  }

  /** The targets from now on, each by a name of its own. One that stays as it was keeps what is known of it. */
  want(wanted: ReadonlyMap<string, T>): void {
    for (const [key, entry] of this.#entries) {
      const target = wanted.get(key)
      if (target !== undefined && JSON.stringify(target) === JSON.stringify(entry.target)) continue
      stop(entry)
      this.#entries.delete(key)
    }
    for (const [key, target] of wanted) {
      if (this.#entries.has(key)) continue
      const entry: Entry<T> = { target, failures: 0, abort: new AbortController() }
      this.#entries.set(key, entry)
      if (this.#on) this.#schedule(entry, this.#options.firstMs ?? 0)
    }
    this.#options.onChange()
  }

  /** Asks soon whether an onion is reachable: something changed on the way to it. */
  again(onion: string): void {
    for (const entry of this.#entries.values()) {
      if (!entry.target.onion.endsWith(`${onion}.onion`)) continue
      renew(entry)
      if (this.#on) this.#schedule(entry, 0)
    }
  }

  /** tor can carry streams, or cannot: then nothing is known of any target. */
  enable(on: boolean): void {
    if (this.#on === on) return
    this.#on = on
    // Whoever waits for a free place would be asked though tor is down, and twice once it is up again.
    this.#queue.length = 0
    const { firstMs = 0 } = this.#options
    for (const entry of this.#entries.values()) {
      renew(entry)
      delete entry.result
      if (on) this.#schedule(entry, firstMs + Math.min(2_000, 100 * this.#entries.size) * this.#random())
    }
    this.#options.onChange()
  }

  result(key: string): ProbeResult | undefined {
    return this.#entries.get(key)?.result
  }

  close(): void {
    this.#on = false
    clearTimeout(this.#gap)
    for (const entry of this.#entries.values()) stop(entry)
    this.#entries.clear()
  }

  #schedule(entry: Entry<T>, afterMs: number): void {
    entry.timer = setTimeout(() => {
      // Who failed and is not called unreachable yet comes before those who only have their turn.
      if (entry.failures > 0 && entry.failures < (this.#options.confirm ?? 1)) this.#queue.unshift(entry)
      else this.#queue.push(entry)
      this.#next()
    }, afterMs)
  }

  #next(): void {
    const { parallel = 3, gapMs = 0 } = this.#options
    while (this.#active < parallel && this.#gap === undefined) {
      const entry = this.#queue.shift()
      if (entry === undefined) return
      const { signal } = entry.abort
      if (signal.aborted) continue
      const wait = this.#mayStartAt - performance.now()
      if (wait > 0) {
        this.#queue.unshift(entry)
        this.#gap = setTimeout(() => {
          this.#gap = undefined
          this.#next()
        }, wait)
        return
      }
      this.#mayStartAt = performance.now() + gapMs
      this.#active += 1
      void this.#probe(entry, signal).finally(() => {
        this.#active -= 1
        this.#next()
      })
    }
  }

  async #probe(entry: Entry<T>, signal: AbortSignal): Promise<void> {
    const { intervalMs = 60_000, retryMs = 5_000, confirm = 1 } = this.#options
    const found = await this.#result(entry.target, signal)
    if (signal.aborted) return
    const before = entry.result
    const { reachable, latencyMs = before?.latencyMs, ...said } = found
    entry.failures = reachable ? 0 : entry.failures + 1
    const known = reachable || entry.failures >= confirm ? reachable : before?.reachable
    entry.result = {
      ...(known === undefined ? {} : { reachable: known }),
      ...said,
      probed: Date.now(),
      ...(latencyMs === undefined ? {} : { latencyMs }),
      failures: entry.failures,
    }
    const every = entry.target.everyMs ?? intervalMs
    const pause = reachable ? every : Math.min(every, retryMs * 2 ** Math.min(entry.failures - 1, 16))
    this.#schedule(entry, pause * (0.8 + 0.4 * this.#random()))
    if (isNews(before, entry.result)) this.#options.onChange()
  }

  async #result(
    target: T,
    signal: AbortSignal,
  ): Promise<Omit<ProbeResult, 'probed' | 'failures' | 'reachable'> & { reachable: boolean }> {
    const { attempt, network, expected } = this.#options
    const began = performance.now()
    const took = (): { latencyMs: number } => ({ latencyMs: Math.round(performance.now() - began) })
    try {
      const answer = await attempt(target, { username: fresh(), extended: false, signal })
      return { reachable: true, ...took(), ...answer }
    } catch (first) {
      if (signal.aborted) return { reachable: false }
      try {
        const answer = await attempt(target, { username: fresh(), extended: true, signal })
        return { reachable: true, ...took(), ...answer }
      } catch (second) {
        const failure = explain(first, second)
        const answer = expected?.(target, failure)
        if (answer !== undefined) return { reachable: true, ...took(), ...answer }
        if (network === undefined || signal.aborted) return { reachable: false, ...failure }
        return { reachable: false, ...failure, network: await network() }
      }
    }
  }

  #random(): number {
    return (this.#options.random ?? Math.random)()
  }
}

function isNews(before: ProbeResult | undefined, after: ProbeResult): boolean {
  return (
    before?.reachable !== after.reachable ||
    before?.reason !== after.reason ||
    before?.message !== after.message ||
    before?.failures !== after.failures ||
    before?.network !== after.network
  )
}

/** The second attempt knows the cause better, unless it got no reply at all. */
function explain(first: unknown, second: unknown): { reason: string; message: string } {
  if (second instanceof ProbeFailure) return { reason: second.reason, message: second.message }
  const error =
    second instanceof SocksError && (second.reply >= 0 || !(first instanceof SocksError)) ? second : first
  if (error instanceof ProbeFailure) return { reason: error.reason, message: error.message }
  if (!(error instanceof SocksError)) return { reason: 'ProbeFailed', message: messageOf(error) }
  const code = `0x${error.reply.toString(16).padStart(2, '0')}`
  const told = error.reply < 0 || error.message.toLowerCase().includes(code)
  return { reason: error.reason, message: told ? error.message : `${error.message} (SOCKS reply ${code})` }
}

function fresh(): string {
  return `probe-${randomBytes(8).toString('hex')}`
}

function stop(entry: { timer?: NodeJS.Timeout; abort: AbortController }): void {
  clearTimeout(entry.timer)
  entry.abort.abort()
}

function renew(entry: Entry<ProbeTarget>): void {
  stop(entry)
  entry.failures = 0
  entry.abort = new AbortController()
}
