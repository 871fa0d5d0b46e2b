import { messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import { type Circuit, circuitsOf } from '../control/circuits.ts'
import type { ControlClient } from '../control/client.ts'
import { freePort, type PortSample, scrape } from './metrics-port.ts'

type Control = Pick<ControlClient, 'getInfo' | 'setConf' | 'resetConf'>
type Source = 'control' | 'metrics'

export interface TorMetricsOptions {
  /** The agent's own address. */
  host: string
  /** The connection to tor, while there is one. */
  control(): Control | undefined
  /** Whether tor is bootstrapped: before that it has nothing to tell, and opens no port. */
  bootstrapped(): boolean
  /** Whether the user lets addresses of onions be seen. */
  addresses(): boolean
  /** Addresses of the onions that are ours; what is said of any other is dropped. */
  onions(): Iterable<string>
  log: Logger
  /** What was heard is good for so long; default 5 s. */
  freshMs?: number
  /** For each source; default 2 s. */
  timeoutMs?: number
}

/** What tor says of one onion; numbers are absent where their source is closed or silent. */
export interface OnionFigures {
  /** Introduction circuits that stand. */
  introCircuits?: number
  powEffort?: number
  powQueue?: number
  rendezvous?: number
  /** By tor's word for the reason. */
  rejected: ReadonlyMap<string, number>
  rendezvousErrors: ReadonlyMap<string, number>
}

interface PortFigures {
  powEffort?: number
  powQueue?: number
  rendezvous?: number
  rejected: Map<string, number>
  rendezvousErrors: Map<string, number>
}

const NUMBERS: ReadonlyMap<string, 'powEffort' | 'powQueue' | 'rendezvous'> = new Map([
  ['tor_hs_pow_suggested_effort', 'powEffort'],
  ['tor_hs_rdv_pow_pqueue_count', 'powQueue'],
  ['tor_hs_rdv_num_total', 'rendezvous'],
])
const BY_REASON: ReadonlyMap<string, 'rejected' | 'rendezvousErrors'> = new Map([
  ['tor_hs_intro_rejected_intro_req_count', 'rejected'],
  ['tor_hs_rdv_error_count', 'rendezvousErrors'],
])
const NAMES: ReadonlySet<string> = new Set([...NUMBERS.keys(), ...BY_REASON.keys()])
const REASON = /^[a-z0-9_]{1,64}$/
const REASONS_MOST = 32
const NOTHING: ReadonlyMap<string, number> = new Map()

/**
 * What tor itself knows of our onions, asked when somebody scrapes us. Introduction circuits come from the control port,
 * which is open everywhere; the rest only MetricsPort tells.
 *
 * That port has neither a password nor a unix socket, and its labels are addresses of onions: who reaches it knows
 * them. So it is opened on the loopback address alone, for that address alone, and only where the loopback is the
 * pod's own. An agent whose own address is a loopback one shares it with all users of the machine: there the port stays
 * closed until the user lets addresses be seen, and is closed again when that ends.
 */
export class TorMetrics {
  readonly #options: TorMetricsOptions
  readonly #shared: boolean
  readonly #host: string
  readonly errors: Record<Source, number> = { control: 0, metrics: 0 }
  #circuits: ReadonlyMap<string, number> | undefined
  #figures: ReadonlyMap<string, PortFigures> | undefined
  #looking: Promise<void> | undefined
  #lookedAt = Number.NEGATIVE_INFINITY
  #closer: NodeJS.Timeout | undefined

  constructor(options: TorMetricsOptions) {
    this.#options = options
    this.#shared = options.host.startsWith('127.')
    this.#host = this.#shared ? options.host : '127.0.0.1'
  }

  /** Asks tor, unless it was asked just now. Never rejects: what cannot be had is left out and counted. */
  refresh(): Promise<void> {
    const { freshMs = 5_000 } = this.#options
    if (performance.now() - this.#lookedAt < freshMs) return this.#looking ?? Promise.resolve()
    this.#looking ??= this.#look().finally(() => {
      this.#lookedAt = performance.now()
      this.#looking = undefined
    })
    return this.#looking
  }

  /** As of the newest `refresh`. */
  figures(address: string): OnionFigures {
    return {
      ...(this.#circuits === undefined ? {} : { introCircuits: this.#circuits.get(address) ?? 0 }),
      ...(this.#figures?.get(address) ?? { rejected: NOTHING, rendezvousErrors: NOTHING }),
    }
  }

  async #look(): Promise<void> {
    const control = this.#options.control()
    const known = new Set(this.#options.onions())
    const [circuits, figures] = await Promise.all([
      this.#ask('control', async () => control && introCircuits(await circuitsOf(control), known)),
      this.#ask('metrics', async () => control && this.#scrape(control, known)),
    ])
    this.#circuits = circuits
    this.#figures = figures
  }

  async #ask<T>(source: Source, ask: () => Promise<T>): Promise<T | undefined> {
    const { timeoutMs = 2_000, log } = this.#options
    let limit: NodeJS.Timeout | undefined
    try {
      const late = new Promise<never>((_resolve, reject) => {
        limit = setTimeout(() => reject(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs)
      })
      return await Promise.race([ask(), late])
    } catch (error) {
      this.errors[source] += 1
      log.debug({ source, error: messageOf(error) }, 'tor does not say how its onions are')
      return undefined
    } finally {
      clearTimeout(limit)
    }
  }

  #allowed(): boolean {
    return !this.#shared || this.#options.addresses()
  }

  async #scrape(
    control: Control,
    known: ReadonlySet<string>,
  ): Promise<ReadonlyMap<string, PortFigures> | undefined> {
    if (!this.#options.bootstrapped() || !this.#allowed()) return undefined
    const figures = new Map<string, PortFigures>()
    const port = (await listening(control)) ?? (await this.#open(control))
    const { timeoutMs = 2_000 } = this.#options
    await scrape({
      host: this.#host,
      port,
      names: NAMES,
      timeoutMs,
      onSample: (sample) => take(figures, sample, known),
    })
    return figures
  }

  /** Not in the torrc: there a port that somebody took a moment before would keep tor from starting. */
  async #open(control: Control): Promise<number> {
    const port = await freePort(this.#host)
    await control.setConf([
      ['MetricsPort', `${this.#host}:${port}`],
      ['MetricsPortPolicy', `accept ${this.#host}`],
    ])
    if (this.#shared) this.#closeInTime()
    return port
  }

  #closeInTime(): void {
    this.#closer ??= setInterval(async () => {
      const control = this.#options.control()
      if (this.#allowed() || control === undefined) return
      try {
        await control.resetConf('MetricsPort', 'MetricsPortPolicy')
        clearInterval(this.#closer)
        this.#closer = undefined
      } catch (error) {
        this.#options.log.warn({ error: messageOf(error) }, "tor's MetricsPort is not closed yet")
      }
    }, this.#options.freshMs ?? 5_000)
    this.#closer.unref()
  }
}

/** The port that tor listens on for metrics, if any. */
async function listening(control: Control): Promise<number | undefined> {
  const key = 'net/listeners/metrics'
  const found = /"127\.[\d.]+:(\d+)"/.exec((await control.getInfo(key))[key] ?? '')?.[1]
  return found === undefined ? undefined : Number(found)
}

/** Counts each onion's introduction circuits that stand. */
export function introCircuits(
  circuits: readonly Circuit[],
  known: ReadonlySet<string>,
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { state, hsState, onion } of circuits) {
    if (state !== 'BUILT' || hsState !== 'HSSI_ESTABLISHED' || !known.has(onion)) continue
    counts.set(onion, (counts.get(onion) ?? 0) + 1)
  }
  return counts
}

function take(
  figures: Map<string, PortFigures>,
  { name, labels, value }: PortSample,
  known: ReadonlySet<string>,
): void {
  const { onion = '', reason = '' } = labels
  if (value < 0 || !known.has(onion)) return
  let one = figures.get(onion)
  if (one === undefined) {
    one = { rejected: new Map(), rendezvousErrors: new Map() }
    figures.set(onion, one)
  }
  const number = NUMBERS.get(name)
  if (number !== undefined) one[number] = value
  const group = BY_REASON.get(name)
  if (group !== undefined && REASON.test(reason) && one[group].size < REASONS_MOST)
    one[group].set(reason, value)
}
