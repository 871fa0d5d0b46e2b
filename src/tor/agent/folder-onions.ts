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
import { afterFailure, type OnionHistory, type OnionStep, planOnions } from './onion-plan.ts'
import { changedShapes, shapeOf } from './onion-shape.ts'
import { onionState } from './onion-state.ts'
import { countUpload, type TrackedOnion, tracked } from './uploads.ts'

export interface FolderOnionsOptions {
  /** Folder of tor's, in which each onion gets one. */
  folder: string
  keys: OnionKeys
  backends: Backends
  log: Logger
  onChange(): void
  /** tor left a command without an answer. */
  onHung(): void
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
  readonly #history = new Map<string, OnionHistory>()
  readonly #failures = new Map<string, { reason: string; message: string }>()
  readonly #convergence: Convergence<ControlClient>
  #bootstrappedAt: number | undefined

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
    const changed = changedShapes(this.#wanted, onions)
    this.#wanted = onions
    for (const { address, ports } of onions) this.#options.backends.update(address, ports)
    for (const known of [this.#history, this.#failures]) for (const address of changed) known.delete(address)
    void this.#convergence.look()
  }

  keysChanged(): void {
    void this.#convergence.look()
  }

  /** tor can upload descriptors from now on. */
  bootstrapped(): void {
    if (this.#bootstrappedAt !== undefined) return
    this.#bootstrappedAt = this.#now()
    void this.#convergence.look()
  }

  /** @param fresh this tor was just started and has no onions */
  attach(control: ControlClient, fresh: boolean): void {
    if (fresh) this.#forget()
    void this.#convergence.attach(control)
  }

  detach(died: boolean): void {
    this.#convergence.detach()
    if (!died) return
    this.#bootstrappedAt = undefined
    this.#forget()
    this.#options.onChange()
  }

  event(event: HsDescEvent): void {
    const onion = this.#live.get(event.address)
    if (onion === undefined) return
    const before = onion.published
    if (!countUpload(onion, event, this.#now(), Date.now())) return
    if (onion.published && !before) this.#history.delete(onion.address)
    if (event.action === 'UPLOAD' ? onion.uploadsAsked === 1 : !before) void this.#convergence.look()
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
  }

  idle(): Promise<void> {
    return this.#convergence.idle()
  }

  /** Addresses that have sockets here. */
  has(address: string): boolean {
    return this.#live.has(address) || this.#wanted.some((onion) => onion.address === address)
  }

  #forget(): void {
    this.#live.clear()
    this.#history.clear()
    this.#failures.clear()
  }

  #failed(error: unknown): number | undefined {
    if (codeOf(error) === 'ControlClosed') return undefined
    this.#options.log.warn({ error: messageOf(error) }, 'onions with circuit numbers could not be set')
    if (codeOf(error) !== 'ControlTimeout') return RETRY_MS
    this.#options.onHung()
    return undefined
  }

  async #converge(control: ControlClient): Promise<void> {
    const { steps, again } = planOnions({
      wanted: this.#wanted.map((onion) => ({
        name: onion.name,
        address: onion.address,
        since: onion.since,
        shape: shapeOf(onion),
        usable: this.#options.keys.check(onion.name, onion.address).ok,
      })),
      live: this.#live,
      history: this.#history,
      bootstrappedAt: this.#bootstrappedAt,
      now: this.#now(),
    })
    if (steps.length === 0) {
      this.#convergence.lookAfter(again === undefined ? undefined : Math.max(10, again - this.#now()))
      return
    }
    await this.#takeOut(control, steps)
    for (const step of steps) {
      if (this.#convergence.stopped || this.#convergence.live !== control) return
      const plan = this.#wanted.find(({ address }) => address === step.address)
      if (step.do !== 'remove' && plan !== undefined) await this.#add(control, plan)
    }
    void this.#convergence.look()
  }

  /** All that leave or are replaced, at once: tor ends their visits, and so those of clients that may come no more. */
  async #takeOut(control: ControlClient, steps: readonly OnionStep[]): Promise<void> {
    const { backends, foreign, log } = this.#options
    const leaving = steps.filter((step) => step.do !== 'add')
    if (leaving.length === 0) return
    for (const step of leaving) {
      this.#live.delete(step.address)
      if (step.do !== 'replace' || step.why !== 'lost') continue
      this.#history.set(step.address, afterFailure(this.#history.get(step.address), this.#now(), 'lost'))
      const name = this.#wanted.find(({ address }) => address === step.address)?.name
      log.warn({ onion: name }, 'its descriptor got lost: onion is published anew')
    }
    await this.#set(control)
    for (const { address } of leaving) {
      await rm(this.#path(address), { recursive: true, force: true })
      if (foreign?.(address) === true) continue
      const plan = this.#wanted.find((onion) => onion.address === address)
      await backends.keep(address, plan?.ports.map(virtualPort) ?? [])
    }
  }

  async #add(control: ControlClient, onion: OnionPlan): Promise<void> {
    const { address, name } = onion
    try {
      await this.#options.backends.open(address, onion.ports)
      await writeOnionFolder(this.#path(address), onion, this.#options.keys.secret(name))
      this.#live.set(address, tracked(onion, this.#now()))
      await this.#set(control)
      this.#failures.delete(address)
      this.#options.log.info({ onion: name }, 'onion added')
    } catch (error) {
      this.#live.delete(address)
      if (!(error instanceof ControlError) && codeOf(error) !== 'ListenFailed') throw error
      const reason = codeOf(error) === 'ListenFailed' ? 'ListenFailed' : 'TorRefused'
      this.#history.set(address, afterFailure(this.#history.get(address), this.#now(), 'refused'))
      this.#failures.set(address, { reason, message: messageOf(error) })
      this.#options.log.error({ onion: name, reason, error: messageOf(error) }, 'onion not published')
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
