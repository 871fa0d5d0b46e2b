import { createHash } from 'node:crypto'
import { Convergence } from '../../agent/convergence.ts'
import { codeOf, messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import type { ProxyPlan } from '../contract.ts'
import type { ControlClient } from '../control/client.ts'

type Control = Pick<ControlClient, 'addClientAuth' | 'removeClientAuth'>

export interface ClientAuthsOptions {
  log: Logger
  /** A key was given to tor or taken from it: what was tried before says nothing any more. */
  onChange(onion: string): void
}

const RETRY_MS = 2_000

/**
 * The keys by which this tor opens private onions of others. tor forgets them when it ends, and has one an onion: all
 * targets of an onion share it, the first in the order of names decides.
 */
export class ClientAuths {
  readonly #options: ClientAuthsOptions
  #files: ReadonlyMap<string, Buffer> = new Map()
  #proxies: readonly ProxyPlan[] = []
  readonly #convergence: Convergence<Control>
  /** By address: digest of the key that tor has. */
  readonly #known = new Map<string, string>()

  constructor(options: ClientAuthsOptions) {
    this.#options = options
    this.#convergence = new Convergence({
      converge: (control) => this.#converge(control),
      failed: (error) => this.#failed(error),
    })
  }

  /** The mounted keys. */
  use(files: ReadonlyMap<string, Buffer>): void {
    this.#files = files
    void this.#convergence.look()
  }

  want(proxies: readonly ProxyPlan[]): void {
    this.#proxies = proxies
    void this.#convergence.look()
  }

  /** @param fresh this tor was just started and knows no key */
  attach(control: Control, fresh: boolean): void {
    if (fresh) this.#known.clear()
    void this.#convergence.attach(control)
  }

  detach(): void {
    this.#convergence.detach()
  }

  close(): void {
    this.#convergence.stop()
  }

  /** Why a target cannot be reached as things are; undefined when that is not for its key. */
  problem(authFile: string | undefined): string | undefined {
    if (authFile === undefined) return undefined
    const { length } = this.#files.get(authFile) ?? {}
    if (length === 32) return undefined
    return length === undefined ? `the keys hold no ${authFile}` : `${authFile} has ${length} bytes, not 32`
  }

  #failed(error: unknown): number | undefined {
    if (codeOf(error) === 'ControlClosed') return undefined
    this.#options.log.warn({ error: messageOf(error) }, 'a key for a private onion could not be set')
    return RETRY_MS
  }

  async #converge(control: Control): Promise<void> {
    const wanted = this.#wanted()
    for (const address of [...this.#known.keys()]) {
      if (wanted.has(address)) continue
      await control.removeClientAuth(address)
      this.#known.delete(address)
      this.#options.onChange(address)
    }
    for (const [address, secret] of wanted) {
      const digest = createHash('sha256').update(secret).digest('hex')
      if (this.#known.get(address) === digest) continue
      await control.addClientAuth(address, secret)
      this.#known.set(address, digest)
      this.#options.onChange(address)
    }
  }

  /** Address without `.onion` → key. */
  #wanted(): Map<string, Buffer> {
    const wanted = new Map<string, Buffer>()
    for (const { onion, authFile } of this.#proxies.flatMap((proxy) => proxy.targets)) {
      const secret = authFile === undefined ? undefined : this.#files.get(authFile)
      const address = onion.replace(/\.onion$/, '').slice(-56)
      if (secret?.length === 32 && !wanted.has(address)) wanted.set(address, secret)
    }
    return wanted
  }
}
