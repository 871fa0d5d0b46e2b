import type { OnionPlan, OnionState } from '../contract.ts'
import type { ControlClient } from '../control/client.ts'
import type { HsDescEvent } from '../control/events.ts'
import { FolderOnions } from './folder-onions.ts'
import { Onions, type OnionsOptions } from './onions.ts'

export interface OnionSetOptions extends OnionsOptions {
  /** Folder for those onions that tor has from its configuration. */
  folder: string
}

/**
 * All onions of a tor: those that the control port adds, and those that need more than it can give. What is said of one
 * is told to both, since each knows its own.
 */
export class OnionSet {
  readonly #added: Onions
  readonly #configured: FolderOnions
  #order: readonly OnionPlan[] = []

  constructor(options: OnionSetOptions) {
    this.#configured = new FolderOnions({ ...options, foreign: (address) => this.#isAdded(address) })
    this.#added = new Onions({ ...options, foreign: (address) => this.#configured.has(address) })
  }

  /** The onions that should be; see {@link Onions.want}. One that changes sides leaves the one before it is added by the other. */
  want(onions: readonly OnionPlan[]): void {
    this.#order = onions
    const configured = onions.filter(({ circuitIds }) => circuitIds === true)
    const added = onions.filter(({ circuitIds }) => circuitIds !== true)
    this.#configured.want(configured)
    this.#added.want(added)
  }

  #isAdded(address: string): boolean {
    return this.#order.some((onion) => onion.address === address && onion.circuitIds !== true)
  }

  keysChanged(): void {
    this.#added.keysChanged()
    this.#configured.keysChanged()
  }

  attach(control: ControlClient, fresh: boolean): void {
    this.#added.attach(control, fresh)
    this.#configured.attach(control, fresh)
  }

  detach(died: boolean): void {
    this.#added.detach(died)
    this.#configured.detach(died)
  }

  bootstrapped(): void {
    this.#added.bootstrapped()
    this.#configured.bootstrapped()
  }

  event(event: HsDescEvent): void {
    this.#added.event(event)
    this.#configured.event(event)
  }

  check(): void {
    this.#added.check()
  }

  /** In the order in which they were wanted. */
  states(): OnionState[] {
    const states = new Map(
      [...this.#added.states(), ...this.#configured.states()].map((state) => [state.address, state]),
    )
    return this.#order.flatMap(({ address }) => states.get(address) ?? [])
  }

  stop(): void {
    this.#added.stop()
    this.#configured.stop()
  }

  /** See {@link Onions.withdraw}. Onions of the configuration stay: tor would end their visits with them. */
  withdraw(visited: ReadonlySet<string>, held: ReadonlySet<string>): Promise<number> {
    return this.#added.withdraw(visited, held)
  }

  async idle(): Promise<void> {
    await Promise.all([this.#added.idle(), this.#configured.idle()])
  }
}
