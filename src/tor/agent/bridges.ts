import { Convergence } from '../../agent/convergence.ts'
import { messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import type { BridgeLine } from '../bridges/lines.ts'
import { BRIDGES_FILE, type BridgeState, type TorTopology } from '../contract.ts'
import type { ControlClient } from '../control/client.ts'
import { ControlError } from '../control/errors.ts'
import type { TorEvent } from '../control/events.ts'
import {
  afterNews,
  type BridgeNews,
  type BridgeRecord,
  newsOfEvent,
  newsOfLists,
  untried,
} from './bridge-health.ts'
import type { BridgeSet } from './bridge-set.ts'
import { BridgeTarget, type NetworkProblem } from './bridge-target.ts'
import {
  accessDirectly,
  accessesThrough,
  accessNothing,
  accessThrough,
  type NetworkAccess,
  readNetworkAccess,
} from './network-access.ts'
import { Redaction } from './redaction.ts'

type Control = Pick<ControlClient, 'getConf' | 'setConf' | 'getInfo'>

export interface BridgesOptions {
  log: Logger
  /** false: DisableNetwork is never set to 0; for tests. */
  network: boolean
  /** Something of the report may have changed. */
  onChange(): void
  /** None worked, after some had, and one does again. */
  onRecovered?(): void
  /** Folder of the transports' programs; default /usr/bin. */
  programs?: string
  /** A set that still works is replaced at most so often; default 60 s. */
  everyMs?: number
  /** Milliseconds of a clock that never jumps. */
  now?: () => number
}

const EVERY_MS = 60_000
const RETRY_MS = 2_000
/** An option that speaks against the bridges may be gone. */
const REFUSED_MS = 30_000

/**
 * How tor gets at the network: directly, through bridges, or, where it has to use bridges and has none, not at all. Any
 * change of bridges costs every onion its introduction circuits, so nothing is sent that would change nothing.
 */
export class Bridges {
  readonly #options: BridgesOptions
  readonly #now: () => number
  readonly #redaction = new Redaction()
  readonly #target: BridgeTarget
  readonly #convergence: Convergence<Control>
  /** undefined: tor has to be asked. */
  #access: NetworkAccess | undefined
  /** Of {@link #access}, with a record of each by fingerprint. */
  #inForce: readonly BridgeLine[] = []
  #records = new Map<string, BridgeRecord>()
  /** None of them works, after some had. */
  #outage = false
  #appliedAt = Number.NEGATIVE_INFINITY
  #refused: { key: string; at: number } | undefined
  #problem: NetworkProblem | undefined
  #rejected: string | undefined
  /** Another set waits for its turn. */
  #waiting = false

  constructor(options: BridgesOptions) {
    this.#options = options
    this.#target = new BridgeTarget(options.programs)
    this.#now = options.now ?? (() => performance.now())
    this.#convergence = new Convergence({
      converge: (control) => this.#pass(control),
      failed: (error) => this.#failed(error),
    })
  }

  /** The mounted keys. */
  use(files: ReadonlyMap<string, Buffer>): void {
    this.#target.use(files.get(BRIDGES_FILE)?.toString('utf8'))
    void this.#convergence.look()
  }

  /** @param wish undefined: connect directly */
  want(wish: TorTopology['daemon']['bridges']): void {
    this.#target.want(wish)
    void this.#convergence.look()
  }

  /** Resolves once a tor that was just got hold of has the network, or is known to go without. */
  attach(control: Control): Promise<void> {
    this.#access = undefined
    this.#refused = undefined
    return this.#convergence.attach(control)
  }

  detach(died: boolean): void {
    this.#convergence.detach()
    if (!died) return
    // The next tor has tried none of them.
    this.#outage = false
    this.#track(this.#inForce, true)
    this.#options.onChange()
  }

  event(event: TorEvent): void {
    const said = newsOfEvent(event)
    if (said !== undefined) this.#take(said.fingerprint, said.news)
  }

  close(): void {
    this.#convergence.stop()
  }

  /** Of the bridges in force; undefined where none are to be used. */
  get states(): BridgeState[] | undefined {
    if (!this.#target.wanted) return undefined
    return [...this.#records].map(([fingerprint, { state, since, reason }]) => ({
      fingerprint,
      state,
      since,
      ...(reason === undefined ? {} : { reason }),
    }))
  }

  /** Why tor is kept off the network, or undefined. */
  get problem(): NetworkProblem | undefined {
    return this.#problem
  }

  /** What of the bridges is not in force, and why. */
  get rejected(): string[] {
    return [this.#target.rejected, this.#rejected].filter((text) => text !== undefined)
  }

  /** A line of tor's log without the addresses of bridges, which it writes even where it hides those of everybody else. */
  redact(text: string): string {
    return this.#redaction.of(text)
  }

  async #pass(control: Control): Promise<void> {
    try {
      await this.#converge(control)
    } catch (error) {
      // Whether it came to pass is not known.
      this.#access = undefined
      throw error
    }
    this.#options.onChange()
  }

  #failed(error: unknown): number {
    this.#options.log.warn({ error: messageOf(error) }, 'how tor connects could not be set')
    this.#options.onChange()
    return RETRY_MS
  }

  async #converge(control: Control): Promise<void> {
    const network = this.#options.network
    const { set, problem } = await this.#target.look()
    this.#redaction.add(set?.bridges.map(({ host }) => host) ?? [])
    const heard = this.#access !== undefined
    const access = this.#access ?? (await readNetworkAccess(control))
    this.#access = access
    this.#waiting = false
    if (problem !== undefined) {
      this.#access = await accessNothing(control, access)
      this.#problem = problem
    } else if (set === undefined) {
      await this.#change(control, 'direct', () => accessDirectly(control, access, network))
      if (this.#access.bridges === undefined) this.#track([])
    } else if (accessesThrough(access, set) && access.on === network) {
      this.#track(set.bridges)
      this.#settled()
      if (!heard) await this.#look(control)
    } else {
      const wait = this.#waitFor(access, set)
      this.#waiting = wait > 0
      if (this.#waiting) {
        if (!heard) await this.#look(control)
        return this.#convergence.lookAfter(wait)
      }
      await this.#apply(control, access, set)
    }
  }

  async #apply(control: Control, access: NetworkAccess, set: BridgeSet): Promise<void> {
    const before = this.#inForce
    // tor speaks of new ones before it has answered.
    this.#track([...before, ...set.bridges])
    const key = JSON.stringify(set)
    const applied = await this.#change(control, key, () =>
      accessThrough(control, access, set, this.#options.network),
    )
    if (!applied) {
      this.#track(before)
      return
    }
    this.#appliedAt = this.#now()
    this.#track(set.bridges)
    this.#options.log.info({ bridges: set.bridges.length }, 'bridges in force')
    await this.#look(control)
  }

  /** One change of how tor connects; what tor has refused is tried again only now and then. */
  async #change(control: Control, key: string, step: () => Promise<NetworkAccess>): Promise<boolean> {
    const pause = this.#refused?.key === key ? this.#refused.at + REFUSED_MS - this.#now() : 0
    if (pause > 0) {
      this.#convergence.lookAfter(pause)
      return false
    }
    try {
      this.#access = await step()
    } catch (error) {
      if (!(error instanceof ControlError)) throw error
      const message = `tor does not take the bridges, or an option of the daemon speaks against them: ${this.redact(messageOf(error))}`
      if (this.#refused?.key !== key) this.#options.log.warn({ problem: message }, 'bridges are refused')
      this.#refused = { key, at: this.#now() }
      this.#rejected = message
      // It may have come half way: off the network, and not back.
      this.#access = await readNetworkAccess(control)
      this.#problem = this.#access.on ? undefined : { reason: 'NetworkRefused', message }
      this.#convergence.lookAfter(REFUSED_MS)
      return false
    }
    this.#settled()
    return true
  }

  #settled(): void {
    this.#refused = undefined
    this.#rejected = undefined
    this.#problem = undefined
  }

  /** Milliseconds for which a set that works is left alone. */
  #waitFor(access: NetworkAccess, set: BridgeSet): number {
    if (access.bridges === undefined || access.on !== this.#options.network) return 0
    const wanted = new Set(set.bridges.map(({ line }) => line))
    if (!this.#inForce.some(({ line }) => wanted.has(line))) return 0
    if (!this.#works()) return 0
    return this.#appliedAt + (this.#options.everyMs ?? EVERY_MS) - this.#now()
  }

  #works(): boolean {
    return [...this.#records.values()].some(({ state }) => state === 'healthy')
  }

  /** What came to pass while nobody listened. */
  async #look(control: Control): Promise<void> {
    const lists = await control.getInfo('orconn-status', 'entry-guards')
    for (const [fingerprint, news] of newsOfLists(lists['orconn-status']!, lists['entry-guards']!)) {
      this.#take(fingerprint, news)
    }
  }

  #take(fingerprint: string, news: BridgeNews): void {
    const before = this.#records.get(fingerprint)
    if (before === undefined) return
    const after = afterNews(before, news, Date.now())
    this.#records.set(fingerprint, after)
    if (after.state === before.state && after.reason === before.reason) return
    const { state, reason } = after
    this.#options.log.info({ bridge: fingerprint, state, reason }, 'bridge changed')
    this.#options.onChange()
    const works = this.#works()
    if (works && this.#outage) this.#options.onRecovered?.()
    this.#outage = !works && (this.#outage || before.state === 'healthy')
    // A set that waits for its turn may not have to any more.
    if (this.#waiting) void this.#convergence.look()
  }

  /** Keeps what is known of those that stay. */
  #track(bridges: readonly BridgeLine[], anew = false): void {
    const known = this.#records
    this.#inForce = bridges
    this.#records = new Map(
      bridges.map(({ fingerprint }) => [
        fingerprint,
        (anew ? undefined : known.get(fingerprint)) ?? untried(Date.now()),
      ]),
    )
  }
}
