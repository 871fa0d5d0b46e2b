import { Convergence } from '../../agent/convergence.ts'
import { codeOf, messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import type { OnionPlan, OnionState } from '../contract.ts'
import type { AddOnion, OnionPortMapping } from '../control/add-onion.ts'
import type { ControlClient } from '../control/client.ts'
import { ControlError } from '../control/errors.ts'
import type { HsDescEvent } from '../control/events.ts'
import type { Backends } from './backends.ts'
import { mismatch, type OnionKeys } from './onion-keys.ts'
import { afterFailure, type OnionHistory, type OnionStep, planOnions } from './onion-plan.ts'
import { changedShapes, shapeOf, shutsOut } from './onion-shape.ts'
import { onionState } from './onion-state.ts'
import { Revocations } from './revocations.ts'
import { countUpload, type TrackedOnion, tracked } from './uploads.ts'

export interface OnionsOptions {
  keys: OnionKeys
  backends: Backends
  log: Logger
  onChange(): void
  /** tor left a command without an answer. */
  onHung(): void
  /** How often tor's own list is compared with ours; default 30 s. */
  checkMs?: number
  /** Whether an address is somebody else's, whose sockets and onion are left alone. */
  foreign?: (address: string) => boolean
  /** Up to so many onions are all kept for visitors when they are withdrawn, visited or not; default 50. */
  keepAll?: number
  /** Milliseconds of a clock that never jumps. */
  now?: () => number
}

/** Why an addition did not come about. */
export interface OnionFailure {
  reason: string
  message: string
}

/**
 * Makes the onions of a running tor what they should be, one small step after the other, and never more than the
 * plan allows at a time.
 */
export class Onions {
  readonly #options: OnionsOptions
  readonly #now: () => number
  #wanted: readonly OnionPlan[] = []
  #byAddress = new Map<string, OnionPlan>()
  readonly #live = new Map<string, TrackedOnion>()
  readonly #history = new Map<string, OnionHistory>()
  readonly #failures = new Map<string, OnionFailure>()
  /** Addresses of onions that somebody may have open who may not any more. */
  readonly #revoked: Revocations
  /** By address: tor was made to forget it, and has it again for visitors that were there. */
  readonly #withdrawn = new Map<string, boolean>()
  readonly #convergence: Convergence<ControlClient>
  #bootstrappedAt: number | undefined
  #checkDue = false
  readonly #checker: NodeJS.Timeout

  constructor(options: OnionsOptions) {
    this.#options = options
    this.#revoked = new Revocations(options.log)
    this.#convergence = new Convergence({
      converge: (control) => this.#pass(control),
      failed: (error) => this.#failed(error),
      settled: async () => {
        await this.#releaseBackends()
        options.onChange()
      },
    })
    this.#now = options.now ?? (() => performance.now())
    this.#checker = setInterval(() => this.check(), options.checkMs ?? 30_000)
    this.#checker.unref()
  }

  /** The onions that should be. Endpoints are followed at once, without a word to tor. */
  want(onions: readonly OnionPlan[]): void {
    const changed = changedShapes(this.#wanted, onions)
    this.#wanted = onions
    this.#byAddress = new Map(onions.map((onion) => [onion.address, onion]))
    for (const { address, ports } of onions) this.#options.backends.update(address, ports)
    for (const known of [this.#history, this.#failures]) for (const address of changed) known.delete(address)
    void this.#convergence.look()
  }

  /** The keys changed: what failed for its key is looked at again. */
  keysChanged(): void {
    for (const { address, name } of this.#wanted) {
      if (this.#failures.get(address)?.reason !== 'AddressMismatch') continue
      if (!this.#options.keys.check(name, address).ok) continue
      this.#failures.delete(address)
      this.#history.delete(address)
    }
    void this.#convergence.look()
  }

  /** @param fresh this tor was just started and has no onions */
  attach(control: ControlClient, fresh: boolean): void {
    if (fresh) this.#forget()
    else this.#checkDue = true
    void this.#convergence.attach(control)
  }

  detach(died: boolean): void {
    this.#convergence.detach()
    if (!died) return
    this.#bootstrappedAt = undefined
    this.#forget()
    this.#options.onChange()
  }

  /** tor can upload descriptors from now on. */
  bootstrapped(): void {
    if (this.#bootstrappedAt !== undefined) return
    this.#bootstrappedAt = this.#now()
    void this.#convergence.look()
  }

  event(event: HsDescEvent): void {
    const onion = this.#live.get(event.address)
    if (onion === undefined) return
    const before = onion.published
    if (!countUpload(onion, event, this.#now(), Date.now())) return
    if (onion.published && !before) {
      this.#history.delete(onion.address)
      this.#options.log.info({ onion: this.#byAddress.get(onion.address)?.name }, 'onion published')
    }
    if (event.action === 'UPLOAD' ? onion.uploadsAsked === 1 : !before) void this.#convergence.look()
    this.#options.onChange()
  }

  /** Compares tor's list of onions with ours, soon. */
  check(): void {
    if (this.#convergence.live === undefined) return
    this.#checkDue = true
    void this.#convergence.look()
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

  /** Takes no further step. */
  stop(): void {
    clearInterval(this.#checker)
    this.#convergence.stop()
  }

  /**
   * Lets nobody in any more, and keeps who is in: tor forgets every onion, which ends its introduction circuits and
   * no visitor's, and gets those that have visitors (of a few all) again, without which it would refuse their next streams. Only
   * after `stop`, and with publishing off: so the new introduction points are nobody's to know. May be called again,
   * for visitors that were on their way. Onions that are `held` are left as they are the first time.
   *
   * @returns how many were left
   */
  async withdraw(visited: ReadonlySet<string>, held: ReadonlySet<string> = new Set()): Promise<number> {
    await this.idle()
    const control = this.#convergence.live
    let left = 0
    if (control === undefined) return left
    for (const address of this.#live.keys()) {
      const plan = this.#byAddress.get(address)
      const before = this.#withdrawn.get(address)
      if (before === undefined && held.has(address)) {
        left++
        continue
      }
      // Somebody may have come since the look: of a few onions all are kept, of many those that have visitors.
      const keep =
        plan !== undefined && (visited.has(address) || this.#live.size <= (this.#options.keepAll ?? 50))
      if (before !== undefined && (before || !keep)) continue
      const ports = keep ? await this.#options.backends.open(address, plan.ports) : []
      this.#withdrawn.set(address, keep)
      // Both in one go, so that no stream comes between them.
      const steps: Promise<unknown>[] = before === undefined ? [control.delOnion(address)] : []
      if (keep) steps.push(control.addOnion(this.#addition(plan, ports)))
      for (const step of await Promise.allSettled(steps)) {
        if (step.status === 'fulfilled') continue
        this.#options.log.warn(
          { onion: plan?.name, error: messageOf(step.reason) },
          'could not withdraw an onion',
        )
      }
    }
    return left
  }

  /** Resolves when no step is being taken. */
  idle(): Promise<void> {
    return this.#convergence.idle()
  }

  #forget(): void {
    this.#live.clear()
    this.#revoked.clear()
    this.#history.clear()
    for (const [address, { reason }] of this.#failures) {
      if (reason !== 'AddressMismatch') this.#failures.delete(address)
    }
  }

  async #pass(control: ControlClient): Promise<void> {
    if (this.#checkDue) await this.#compare(control)
    await this.#converge(control)
    await this.#revoked.run(control, (address) => this.#byAddress.get(address)?.name)
  }

  #failed(error: unknown): number | undefined {
    if (codeOf(error) === 'ControlClosed') return undefined
    this.#options.log.warn({ error: messageOf(error) }, 'converging the onions was interrupted')
    if (codeOf(error) !== 'ControlTimeout') return 1_000
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
        usable:
          this.#options.keys.check(onion.name, onion.address).ok &&
          this.#failures.get(onion.address)?.reason !== 'AddressMismatch',
      })),
      live: this.#live,
      history: this.#history,
      bootstrappedAt: this.#bootstrappedAt,
      now: this.#now(),
    })
    for (const step of steps) {
      if (this.#convergence.stopped || this.#convergence.live !== control) return
      await this.#take(control, step)
    }
    if (steps.length > 0) void this.#convergence.look()
    else this.#convergence.lookAfter(again === undefined ? undefined : Math.max(10, again - this.#now()))
  }

  async #take(control: ControlClient, step: OnionStep): Promise<void> {
    const { address } = step
    const plan = this.#byAddress.get(address)
    // What is wanted may have changed while earlier steps were taken: the next plan knows.
    if (step.do === 'remove') {
      if (plan === undefined) await this.#delete(control, address)
      return
    }
    if (plan === undefined || !this.#options.keys.check(plan.name, address).ok) return
    if (step.do === 'replace' && step.why === 'lost') {
      this.#history.set(address, afterFailure(this.#history.get(address), this.#now(), 'lost'))
      this.#options.log.warn({ onion: plan.name }, 'its descriptor got lost: onion is published anew')
    }
    await this.#add(control, plan, step.do === 'replace')
    this.#options.onChange()
  }

  async #add(control: ControlClient, plan: OnionPlan, replace: boolean): Promise<void> {
    const { address, name } = plan
    const { backends, log } = this.#options
    const virtualPorts = plan.ports.map(({ virtualPort }) => virtualPort)
    try {
      const ports = await backends.open(address, plan.ports)
      const before = this.#live.get(address)
      // One that is not there may have been, and left circuits behind.
      if (plan.clients !== undefined && (before === undefined || shutsOut(before.clients, plan.clients)))
        this.#revoked.add(address)
      if (replace) await this.#delete(control, address)
      // Before the command: events of the onion may come in one packet with the reply.
      this.#live.set(address, tracked(plan, this.#now()))
      const serviceId = await this.#command(control, plan, ports)
      if (serviceId !== address) {
        await control.delOnion(serviceId)
        this.#live.delete(address)
        return this.#fail(plan, mismatch(serviceId, address))
      }
      this.#failures.delete(address)
      await backends.keep(address, virtualPorts)
      log.info({ onion: name }, replace ? 'onion replaced' : 'onion added')
    } catch (error) {
      const listening = codeOf(error) === 'ListenFailed'
      // Without its sockets nothing was asked of tor: an onion that is to be replaced is still there.
      if (!listening) this.#live.delete(address)
      if (!listening && !(error instanceof ControlError)) throw error
      this.#history.set(address, afterFailure(this.#history.get(address), this.#now(), 'refused'))
      this.#fail(plan, { reason: listening ? 'ListenFailed' : 'TorRefused', message: messageOf(error) })
    }
  }

  #addition({ name, clients, pow, streams }: OnionPlan, ports: OnionPortMapping[]): AddOnion {
    const flags = ['Detach', 'DiscardPK', ...(streams?.closeCircuit ? ['MaxStreamsCloseCircuit'] : [])]
    return {
      key: this.#options.keys.controlKey(name),
      ports,
      flags,
      ...(clients === undefined ? {} : { clients }),
      ...(pow === undefined ? {} : { pow }),
      ...(streams === undefined ? {} : { maxStreams: streams.max }),
    }
  }

  async #command(control: ControlClient, plan: OnionPlan, ports: OnionPortMapping[]): Promise<string> {
    const onion = this.#addition(plan, ports)
    try {
      return (await control.addOnion(onion)).serviceId
    } catch (error) {
      if (!(error instanceof ControlError) || error.status !== 550) throw error
      // tor has it already, but with which ports nobody can tell.
      await control.delOnion(plan.address)
      return (await control.addOnion(onion)).serviceId
    }
  }

  #fail(plan: OnionPlan, { reason, message }: OnionFailure): void {
    this.#failures.set(plan.address, { reason, message })
    this.#options.log.error({ onion: plan.name, reason, error: message }, 'onion not published')
  }

  async #delete(control: ControlClient, address: string): Promise<void> {
    try {
      await control.delOnion(address)
    } catch (error) {
      // It had gone by itself.
      if (!(error instanceof ControlError) || error.status !== 552) throw error
    }
    this.#live.delete(address)
  }

  /** What tor has and we do not know is removed; what tor lost is added again by the plan. */
  async #compare(control: ControlClient): Promise<void> {
    this.#checkDue = false
    const text = (await control.getInfo('onions/detached'))['onions/detached'] ?? ''
    const there = new Set(text.split(/\s+/).filter((address) => address !== ''))
    for (const address of there) {
      if (this.#live.has(address)) continue
      this.#options.log.warn({ address }, 'tor has an onion that should not be: it is removed')
      await this.#delete(control, address)
    }
    for (const address of [...this.#live.keys()]) {
      if (there.has(address)) continue
      this.#options.log.warn(
        { onion: this.#byAddress.get(address)?.name },
        'tor lost an onion: it is added again',
      )
      this.#live.delete(address)
    }
  }

  async #releaseBackends(): Promise<void> {
    for (const address of this.#options.backends.addresses()) {
      const ours = !this.#byAddress.has(address) && !this.#live.has(address)
      if (ours && this.#options.foreign?.(address) !== true) {
        await this.#options.backends.keep(address, [])
      }
    }
  }
}
