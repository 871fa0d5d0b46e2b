import type { ReportView } from '../../cluster/reports.ts'
import { findCondition } from '../../core/conditions.ts'
import { sameJson } from '../../core/resource.ts'
import type { OnionService } from '../api/onion-service.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import type { TorReport, WatchedState } from '../contract.ts'
import type { ObservedProber } from './observed.ts'
import { type Assignment, assign } from './prober-ring.ts'
import { watchPlan } from './reachability.ts'

export interface ProbersOptions {
  /** A daemon's state may be another: who looks at it, whom it looks at, or what was seen. */
  enqueue(daemon: string): void
  /** Key of the daemon of an onion, by the onion's key. */
  daemonOf(onion: string): string | undefined
  /** A daemon that is not connected any more, or not heard of, goes on being asked for so long; default 5 min. */
  graceMs?: number
  /** What is to be looked at is told to its prober so much later, with all that changes meanwhile; default 5 s. */
  settleMs?: number
}

interface Daemon {
  able: boolean
  /** Runs while it is able by its past alone. */
  grace?: NodeJS.Timeout
}

/**
 * Knows which daemon looks at whose onions, and wakes those for whom that changes. What it knows follows from objects and
 * reports; a start of the operator moves nobody, since daemons that were connected have their time to be heard of.
 */
export class Probers {
  readonly #options: ProbersOptions
  readonly #daemons = new Map<string, Daemon>()
  /** By prober: what it said last. */
  readonly #said = new Map<string, readonly WatchedState[]>()
  readonly #settling = new Map<string, NodeJS.Timeout>()
  #assignment: Assignment = { prober: new Map(), watched: new Map() }
  #stale = false
  #soon: NodeJS.Immediate | undefined

  constructor(options: ProbersOptions) {
    this.#options = options
  }

  /** Who looks at the onions of a daemon. */
  proberOf(daemon: string): string | undefined {
    this.#settle()
    return this.#assignment.prober.get(daemon)
  }

  /** At whose onions a daemon looks. */
  watchedBy(daemon: string): readonly string[] {
    this.#settle()
    return this.#assignment.watched.get(daemon) ?? []
  }

  /** A TorDaemon is there, as it is; or is not any more. */
  daemon(key: string, object: TorDaemon | undefined): void {
    const known = this.#daemons.get(key)
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) {
      if (known === undefined) return
      clearTimeout(known.grace)
      this.#daemons.delete(key)
      this.#changed()
    } else if (known === undefined) {
      const connected = findCondition(object.status?.conditions, 'TorBootstrapped')?.status === 'True'
      this.#daemons.set(key, { able: connected })
      if (connected) this.#lost(key)
      this.#changed()
    }
  }

  /** What is known of a daemon's agent has changed. */
  heard(key: string, view: ReportView<TorReport> | undefined): void {
    const daemon = this.#daemons.get(key)
    if (daemon !== undefined) {
      if (view?.report?.tor.bootstrapped !== true) this.#lost(key)
      else {
        clearTimeout(daemon.grace)
        delete daemon.grace
        if (!daemon.able) this.#changed()
        daemon.able = true
      }
    }
    this.#seen(key, view?.report?.watched ?? [])
  }

  /** An onion has changed: whoever looks at it may have to look at another port, or no more. */
  onion(before: OnionService | undefined, after: OnionService | undefined, daemon: string): void {
    const was = before === undefined ? undefined : watchPlan(before)
    const is = after === undefined ? undefined : watchPlan(after)
    if (sameJson(was, is) || this.#settling.has(daemon)) return
    const timer = setTimeout(() => {
      this.#settling.delete(daemon)
      const prober = this.proberOf(daemon)
      if (prober !== undefined) this.#options.enqueue(prober)
    }, this.#options.settleMs ?? 5_000)
    timer.unref()
    this.#settling.set(daemon, timer)
  }

  close(): void {
    for (const { grace } of this.#daemons.values()) clearTimeout(grace)
    for (const timer of this.#settling.values()) clearTimeout(timer)
    clearImmediate(this.#soon)
    this.#daemons.clear()
    this.#settling.clear()
    this.#said.clear()
  }

  #lost(key: string): void {
    const daemon = this.#daemons.get(key)
    if (daemon === undefined || !daemon.able || daemon.grace !== undefined) return
    daemon.grace = setTimeout(() => {
      delete daemon.grace
      daemon.able = false
      this.#changed()
    }, this.#options.graceMs ?? 300_000)
    daemon.grace.unref()
  }

  /** Wakes the daemons whose onions are seen in another way than before. */
  #seen(prober: string, states: readonly WatchedState[]): void {
    const before = this.#said.get(prober) ?? []
    if (states.length === 0) this.#said.delete(prober)
    else this.#said.set(prober, states)
    const old = new Map(before.map((state) => [onionOf(state), state]))
    const concerned = new Set<string>()
    for (const state of states) {
      const key = onionOf(state)
      if (!sameSight(old.get(key), state)) concerned.add(key)
      old.delete(key)
    }
    for (const key of old.keys()) concerned.add(key)
    const daemons = new Set([...concerned].flatMap((onion) => this.#options.daemonOf(onion) ?? []))
    for (const daemon of daemons) this.#options.enqueue(daemon)
  }

  #changed(): void {
    this.#stale = true
    this.#soon ??= setImmediate(() => this.#settle())
  }

  #settle(): void {
    clearImmediate(this.#soon)
    this.#soon = undefined
    if (!this.#stale) return
    this.#stale = false
    const before = this.#assignment.prober
    this.#assignment = assign(this.#daemons.keys(), (key) => this.#daemons.get(key)?.able === true)
    const after = this.#assignment.prober
    const concerned = new Set<string>()
    for (const daemon of new Set([...before.keys(), ...after.keys()])) {
      const was = before.get(daemon)
      const is = after.get(daemon)
      if (was === is) continue
      for (const one of [daemon, was, is]) if (one !== undefined) concerned.add(one)
    }
    for (const daemon of concerned) this.#options.enqueue(daemon)
  }
}

/** What a daemon's prober has to say of its onions. */
export function observeProber(
  prober: string,
  namespace: string,
  view: ReportView<TorReport> | undefined,
): ObservedProber {
  const report = view?.report
  const states = report?.watched ?? []
  const missed = states.filter(({ reachable }) => reachable === false)
  return {
    daemon: prober,
    silent: report?.tor.bootstrapped !== true,
    watched: new Map(
      states.filter((state) => state.namespace === namespace).map((state) => [state.name, state]),
    ),
    reaches:
      states.some(({ reachable }) => reachable === true) ||
      (report?.targets ?? []).some(({ reachable }) => reachable === true),
    places: new Set(missed.map((state) => state.namespace)).size,
  }
}

function onionOf({ namespace, name }: WatchedState): string {
  return `${namespace}/${name}`
}

/** Times pass; that alone is no news. */
function sameSight(a: WatchedState | undefined, b: WatchedState): boolean {
  return (
    a?.address === b.address &&
    a.reachable === b.reachable &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.failures === b.failures &&
    a.circuits === b.circuits
  )
}
