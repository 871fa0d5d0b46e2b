import { randomBytes } from 'node:crypto'
import { messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import { listen, type RelayListener } from '../../relay/listener.ts'
import { dialSocks5 } from '../../relay/socks5.ts'
import type { ProxyPlan, ProxyTarget } from '../contract.ts'

export interface ProxiesOptions {
  /** The pod's address. */
  host: string
  /** tor's SOCKS socket. */
  socks: string
  log: Logger
  onChange(): void
  /** Pause before a port that was taken is tried again; default 5 s. */
  retryMs?: number
}

interface Entry {
  target: ProxyTarget
  listener?: RelayListener
  error?: string
}

/** One listener a target, each with its own user name towards tor and so with circuits of its own. */
export class Proxies {
  readonly #options: ProxiesOptions
  readonly #entries = new Map<string, Entry>()
  /** Unguessable, so that no workload can choose to share the circuits of a target. */
  readonly #secret = randomBytes(12).toString('hex')
  #wanted = new Map<string, ProxyTarget>()
  #running: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: ProxiesOptions) {
    this.#options = options
  }

  /** The proxies that should be. Resolves once they are, as far as they can be. */
  want(proxies: readonly ProxyPlan[]): Promise<void> {
    this.#wanted = new Map(
      proxies.flatMap((proxy) => proxy.targets.map((target) => [`${proxy.name}/${target.name}`, target])),
    )
    return this.#converge()
  }

  state(proxy: string, target: string): { listening: boolean; error?: string } {
    const entry = this.#entries.get(`${proxy}/${target}`)
    return {
      listening: entry?.listener !== undefined,
      ...(entry?.error === undefined ? {} : { error: entry.error }),
    }
  }

  /** Connections that run, or are being dialled. */
  get connections(): number {
    return [...this.#entries.values()].reduce(
      (sum, { listener }) => sum + (listener?.counters.active ?? 0),
      0,
    )
  }

  /** Accepts nothing more; connections have the grace to end by themselves. */
  async close(graceMs: number): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#running
    const listeners = [...this.#entries.values()].map(({ listener }) => listener)
    this.#entries.clear()
    await Promise.all(listeners.map((listener) => listener?.close({ graceMs })))
  }

  #converge(): Promise<void> {
    this.#running = this.#running.then(() => this.#run())
    return this.#running
  }

  async #run(): Promise<void> {
    if (this.#closed) return
    const wanted = this.#wanted
    // First what goes, since its port may be one that comes.
    for (const [key, entry] of this.#entries) {
      if (wanted.get(key)?.listenPort === entry.target.listenPort) continue
      this.#entries.delete(key)
      await entry.listener?.close()
    }
    for (const [key, target] of wanted) await this.#serve(key, target)
    clearTimeout(this.#timer)
    if ([...this.#entries.values()].some(({ error }) => error !== undefined) && !this.#closed) {
      this.#timer = setTimeout(() => void this.#converge(), this.#options.retryMs ?? 5_000)
    }
    this.#options.onChange()
  }

  async #serve(key: string, target: ProxyTarget): Promise<void> {
    const entry: Entry = this.#entries.get(key) ?? { target }
    this.#entries.set(key, entry)
    const { host, socks, log } = this.#options
    const dial = dialSocks5({
      proxy: { path: socks },
      host: target.onion,
      port: target.port,
      username: isolation(key, this.#secret),
      password: this.#secret,
    })
    const same = entry.target.onion === target.onion && entry.target.port === target.port
    entry.target = target
    if (entry.listener !== undefined) {
      if (!same) entry.listener.setDial(dial)
      return
    }
    try {
      entry.listener = await listen({
        address: { host, port: target.listenPort },
        dial,
        halfClose: { client: true, upstream: false },
        log,
      })
      delete entry.error
    } catch (error) {
      if (entry.error === undefined) log.error({ target: key, error: messageOf(error) }, 'cannot listen')
      entry.error = messageOf(error)
    }
  }
}

/** At most 255 bytes, as SOCKS allows; the end of a long name is as good as all of it beside the secret. */
function isolation(key: string, secret: string): string {
  return `${key.slice(-255 + secret.length + 1)}/${secret}`
}
