import { createHash } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import { dialTcp } from '../../relay/dial.ts'
import { listen, type RelayListener } from '../../relay/listener.ts'
import { patient } from '../../relay/patient.ts'
import type { Endpoint, OnionPort } from '../contract.ts'
import type { OnionPortMapping } from '../control/add-onion.ts'

export interface BackendsOptions {
  /** Folder of the sockets; its path is short. */
  folder: string
  log: Logger
  /** An error came or went. */
  onChange(): void
  /** For one endpoint, in milliseconds. */
  dialTimeoutMs?: number
  /** How long a visitor waits for a backend that does not answer, in milliseconds; default 2 s. */
  patienceMs?: number
}

/** Bytes from visitors and to them, since the onion has had sockets. */
export interface Traffic {
  bytesIn: number
  bytesOut: number
}

interface Entry {
  path: string
  endpoints: readonly Endpoint[]
  listener: RelayListener
  error?: string
  errorAt: number
}

/** An error that only differs in its order of endpoints is no news; so one stands at least this long. */
const ERROR_STANDS_MS = 10_000

/**
 * The sockets that virtual ports point to, and what stands behind them. tor knows the socket only, so a backend
 * may move without tor hearing of it.
 */
export class Backends {
  readonly #options: BackendsOptions
  readonly #onions = new Map<string, Map<number, Entry>>()
  readonly #paths = new Set<string>()
  /** What went through ports that are closed, of onions that have others. */
  readonly #past = new Map<string, Traffic>()
  #prepared: Promise<void> | undefined

  constructor(options: BackendsOptions) {
    this.#options = options
  }

  /**
   * Opens the sockets of an onion that are not open yet; none is closed.
   *
   * @throws PosternError ListenFailed
   */
  async open(address: string, ports: readonly OnionPort[]): Promise<OnionPortMapping[]> {
    this.#prepared ??= this.#prepare()
    await this.#prepared
    const entries = this.#onions.get(address) ?? new Map<number, Entry>()
    this.#onions.set(address, entries)
    for (const port of ports) {
      if (!entries.has(port.virtualPort)) entries.set(port.virtualPort, await this.#listen(address, port))
    }
    this.update(address, ports)
    return ports.map(({ virtualPort }) => ({
      virtualPort,
      target: `unix:${entries.get(virtualPort)!.path}`,
    }))
  }

  /** Where open sockets lead from now on; connections that run stay. */
  update(address: string, ports: readonly OnionPort[]): void {
    const entries = this.#onions.get(address)
    for (const port of ports) {
      const entry = entries?.get(port.virtualPort)
      if (entry === undefined) continue
      // What was said of the endpoints before says nothing of the new ones.
      const moved = entry.error !== undefined && !sameEndpoints(entry.endpoints, port.endpoints)
      entry.endpoints = port.endpoints
      if (!moved) continue
      delete entry.error
      this.#options.onChange()
    }
  }

  /** Closes the sockets of an onion but for these virtual ports, and cuts what runs through them. */
  async keep(address: string, virtualPorts: readonly number[]): Promise<void> {
    const entries = this.#onions.get(address)
    if (entries === undefined) return
    const gone = [...entries].filter(([virtualPort]) => !virtualPorts.includes(virtualPort))
    if (gone.length > 0) this.#past.set(address, sum(this.#past.get(address), gone))
    for (const [virtualPort] of gone) entries.delete(virtualPort)
    if (entries.size === 0) {
      this.#onions.delete(address)
      this.#past.delete(address)
    }
    await Promise.all(gone.map(([, entry]) => this.#close(entry, 0)))
  }

  /** Onions that have sockets. */
  addresses(): string[] {
    return [...this.#onions.keys()]
  }

  /** Connections of all onions that run, or are being dialled. */
  get connections(): number {
    return this.addresses().reduce((sum, address) => sum + this.state(address).connections, 0)
  }

  state(address: string): { connections: number; error?: string } {
    let connections = 0
    let error: string | undefined
    for (const entry of this.#onions.get(address)?.values() ?? []) {
      connections += entry.listener.counters.active
      error ??= entry.error
    }
    return { connections, ...(error === undefined ? {} : { error }) }
  }

  traffic(address: string): Traffic {
    return sum(this.#past.get(address), this.#onions.get(address) ?? [])
  }

  /** Accepts nothing more; connections have the grace to end by themselves. */
  async close(graceMs: number): Promise<void> {
    const entries = [...this.#onions.values()].flatMap((ports) => [...ports.values()])
    this.#onions.clear()
    await Promise.all(entries.map((entry) => this.#close(entry, graceMs)))
  }

  async #prepare(): Promise<void> {
    // What a killed agent left there leads nowhere.
    await rm(this.#options.folder, { recursive: true, force: true })
    await mkdir(this.#options.folder, { recursive: true, mode: 0o700 })
  }

  async #listen(address: string, port: OnionPort): Promise<Entry> {
    const { log, onChange } = this.#options
    const path = this.#freePath(`${address}:${port.virtualPort}`)
    this.#paths.add(path)
    try {
      const entry: Omit<Entry, 'listener'> & { listener?: RelayListener } = {
        path,
        endpoints: port.endpoints,
        errorAt: 0,
      }
      entry.listener = await listen({
        address: { path },
        dial: patient(
          dialTcp(() => entry.endpoints, { timeoutMs: this.#options.dialTimeoutMs ?? 5_000 }),
          this.#options.patienceMs ?? 2_000,
        ),
        // tor has no half-close: it would end the stream both ways and cut the answer short.
        halfClose: { client: false, upstream: true },
        onDialError: (error) => {
          const now = performance.now()
          if (entry.error !== undefined && now - entry.errorAt < ERROR_STANDS_MS) return
          entry.errorAt = now
          const text = messageOf(error).slice(0, 500)
          if (entry.error === text) return
          entry.error = text
          onChange()
        },
        onDialed: () => {
          if (entry.error === undefined) return
          delete entry.error
          onChange()
        },
        log,
      })
      return entry as Entry
    } catch (error) {
      this.#paths.delete(path)
      throw error
    }
  }

  async #close(entry: Entry, graceMs: number): Promise<void> {
    await entry.listener.close({ graceMs })
    this.#paths.delete(entry.path)
  }

  /** Eight hexadecimal digits; should two ports ever share them, the second one takes others. */
  #freePath(key: string): string {
    for (let turn = 0; ; turn += 1) {
      const short = createHash('sha256').update(`${turn}:${key}`).digest('hex').slice(0, 8)
      const path = join(this.#options.folder, short)
      if (!this.#paths.has(path)) return path
    }
  }
}

function sum(past: Traffic | undefined, entries: Iterable<[number, Entry]>): Traffic {
  const total = { bytesIn: past?.bytesIn ?? 0, bytesOut: past?.bytesOut ?? 0 }
  for (const [, { listener }] of entries) {
    total.bytesIn += listener.counters.bytesIn
    total.bytesOut += listener.counters.bytesOut
  }
  return total
}

function sameEndpoints(a: readonly Endpoint[], b: readonly Endpoint[]): boolean {
  return a.length === b.length && a.every(({ host, port }, i) => host === b[i]?.host && port === b[i].port)
}
