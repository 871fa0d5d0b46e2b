import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Convergence } from '../../agent/convergence.ts'
import { codeOf, messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import type { OnionPlan, OnionState } from '../contract.ts'
import type { ControlClient } from '../control/client.ts'
import { ControlError } from '../control/errors.ts'
import type { HsDescEvent } from '../control/events.ts'
import type { Backends } from './backends.ts'
import { folderSettings, writeOnionFolder } from './onion-folder.ts'
import type { OnionKeys } from './onion-keys.ts'
import { ONION_LIMITS } from './onion-plan.ts'
import { shapeOf } from './onion-shape.ts'
import { onionState } from './onion-state.ts'
import { countUpload, type TrackedOnion, tracked } from './uploads.ts'

export interface FolderOnionsOptions {
  /** Folder of tor's, in which each onion gets one. */
  folder: string
  keys: OnionKeys
  backends: Backends
  log: Logger
  onChange(): void
  /** Whether an address is somebody else's, whose sockets are left alone. */
  foreign?: (address: string) => boolean
  /** Milliseconds of a clock that never jumps. */
  now?: () => number
}

const RETRY_MS = 5_000

/**
 * Onions that need what ADD_ONION cannot give: circuit numbers for their backends. tor has them from its configuration
 * (HiddenServiceDir), which one SETCONF replaces as a whole: onions that stay keep their circuits, and one that tor
 * refuses would take all others with it, so each is tried alone first.
 */
export class FolderOnions {
  readonly #options: FolderOnionsOptions
  readonly #now: () => number
  #wanted: readonly OnionPlan[] = []
  readonly #live = new Map<string, TrackedOnion>()
  readonly #failures = new Map<string, { reason: string; message: string }>()
  readonly #convergence: Convergence<ControlClient>
  #retryTimer: NodeJS.Timeout | undefined

  constructor(options: FolderOnionsOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    this.#convergence = new Convergence({
      converge: (control) => this.#converge(control),
      failed: (error) => this.#failed(error),
      settled: options.onChange,
    })
  }

  want(onions: readonly OnionPlan[]): void {
    this.#wanted = onions
    for (const { address, ports } of onions) this.#options.backends.update(address, ports)
    this.#failures.clear()
    void this.#convergence.look()
  }

  keysChanged(): void {
    this.#failures.clear()
    void this.#convergence.look()
  }

  /** @param fresh this tor was just started and has no onions */
  attach(control: ControlClient, fresh: boolean): void {
    if (fresh) this.#live.clear()
    void this.#convergence.attach(control)
  }

  detach(died: boolean): void {
    this.#convergence.detach()
    if (!died) return
    this.#live.clear()
    this.#options.onChange()
  }

  event(event: HsDescEvent): void {
    const onion = this.#live.get(event.address)
    if (onion === undefined) return
    const before = onion.published
    if (!countUpload(onion, event, this.#now(), Date.now())) return
    if (onion.published && !before) void this.#convergence.look()
    this.#options.onChange()
  }

  states(): OnionState[] {
    return this.#wanted.map((onion) =>
      onionState(onion, {
        live: this.#live.get(onion.address),
        key: this.#options.keys.check(onion.name, onion.address),
        failure: this.#failures.get(onion.address),
        backend: this.#options.backends.state(onion.address),
        attached: this.#convergence.live !== undefined,
      }),
    )
  }

  stop(): void {
    this.#convergence.stop()
    clearTimeout(this.#retryTimer)
  }

  idle(): Promise<void> {
    return this.#convergence.idle()
  }

  /** Addresses that have sockets here. */
  has(address: string): boolean {
    return this.#live.has(address) || this.#wanted.some((onion) => onion.address === address)
  }

  #failed(error: unknown): number | undefined {
    if (codeOf(error) === 'ControlClosed') return undefined
    this.#options.log.warn({ error: messageOf(error) }, 'onions with circuit numbers could not be set')
    return RETRY_MS
  }

  /** What was refused is tried again, soon. */
  #retry(): void {
    clearTimeout(this.#retryTimer)
    this.#retryTimer = setTimeout(() => this.keysChanged(), RETRY_MS)
    this.#retryTimer.unref()
  }

  async #converge(control: ControlClient): Promise<void> {
    const wanted = new Map(this.#wanted.map((onion) => [onion.address, onion]))
    const gone = [...this.#live.values()].filter(({ address, shape }) => {
      const plan = wanted.get(address)
      return plan === undefined || shapeOf(plan) !== shape
    })
    if (gone.length > 0) {
      // Taken out first: tor ends the visits of an onion that leaves, and so of clients that may come no more.
      for (const { address } of gone) this.#live.delete(address)
      await this.#set(control)
      for (const { address } of gone) {
        await rm(this.#path(address), { recursive: true, force: true })
        if (this.#options.foreign?.(address) === true) continue
        await this.#options.backends.keep(address, wanted.get(address)?.ports.map(virtualPort) ?? [])
      }
    }
    const flying = [...this.#live.values()].filter(({ published }) => !published).length
    const waiting = this.#wanted
      .filter(({ address, name }) => {
        return (
          !this.#live.has(address) &&
          !this.#failures.has(address) &&
          this.#options.keys.check(name, address).ok
        )
      })
      .sort((a, b) => a.since - b.since)
    for (const onion of waiting.slice(0, Math.max(0, ONION_LIMITS.window - flying))) {
      await this.#add(control, onion)
    }
  }

  async #add(control: ControlClient, onion: OnionPlan): Promise<void> {
    const { address, name } = onion
    try {
      await this.#options.backends.open(address, onion.ports)
      await writeOnionFolder(this.#path(address), onion, this.#options.keys.secret(name))
      this.#live.set(address, tracked(onion, this.#now()))
      await this.#set(control)
      this.#options.log.info({ onion: name }, 'onion added')
    } catch (error) {
      this.#live.delete(address)
      if (!(error instanceof ControlError) && codeOf(error) !== 'ListenFailed') throw error
      const reason = codeOf(error) === 'ListenFailed' ? 'ListenFailed' : 'TorRefused'
      this.#failures.set(address, { reason, message: messageOf(error) })
      this.#options.log.error({ onion: name, reason, error: messageOf(error) }, 'onion not published')
      this.#retry()
    }
  }

  async #set(control: ControlClient): Promise<void> {
    const { backends } = this.#options
    const settings: [string, string | undefined][] = []
    for (const plan of this.#wanted) {
      if (!this.#live.has(plan.address)) continue
      const ports = await backends.open(plan.address, plan.ports)
      settings.push(...folderSettings(this.#path(plan.address), plan, ports))
    }
    await control.setConf(settings.length === 0 ? [['HiddenServiceDir', undefined]] : settings)
  }

  #path(address: string): string {
    return join(this.#options.folder, address)
  }
}

const virtualPort = (port: { virtualPort: number }): number => port.virtualPort
