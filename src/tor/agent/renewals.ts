import { messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import type { OnionPlan, TorTopology } from '../contract.ts'
import type { ControlClient } from '../control/client.ts'

export interface RenewalsOptions {
  control(): Pick<ControlClient, 'command' | 'signal'> | undefined
  /** tor is to be ended and started again. */
  restart(): void
  log: Logger
}

/**
 * What is to be done anew though nothing of it changed: numbers that grow. The number that is found first asks for
 * nothing, since a process that was just started has done everything just now; nor does one that is smaller than before.
 */
export class Renewals {
  readonly #options: RenewalsOptions
  readonly #onions = new Map<string, number>()
  #daemon: { restarts: number; freshCircuits: number } | undefined

  constructor(options: RenewalsOptions) {
    this.#options = options
  }

  /** The onions with the numbers that are in force: another one is another shape to tor, and is published anew. */
  onions(plans: readonly OnionPlan[]): OnionPlan[] {
    const there = new Set(plans.map(({ address }) => address))
    for (const address of this.#onions.keys()) if (!there.has(address)) this.#onions.delete(address)
    return plans.map((plan) => {
      const renewal = Math.max(this.#onions.get(plan.address) ?? 0, plan.renewal ?? 0)
      this.#onions.set(plan.address, renewal)
      return { ...plan, renewal }
    })
  }

  /** Restarts tor, or lets it forget how long circuits took, where that is asked for since the last time. */
  daemon({ restarts = 0, freshCircuits = 0 }: TorTopology['daemon']): void {
    const before = this.#daemon ?? { restarts, freshCircuits }
    this.#daemon = {
      restarts: Math.max(before.restarts, restarts),
      freshCircuits: Math.max(before.freshCircuits, freshCircuits),
    }
    if (restarts > before.restarts) {
      this.#options.log.warn({}, 'tor is started anew: its onions cannot be reached from outside')
      this.#options.restart()
    } else if (freshCircuits > before.freshCircuits) void this.#freshen()
  }

  /** A timeout that was learnt in bad times makes tor wait for circuits that will never be. */
  async #freshen(): Promise<void> {
    const control = this.#options.control()
    try {
      await control?.command('DROPTIMEOUTS')
      await control?.signal('NEWNYM')
      this.#options.log.warn({}, 'tor forgets how long circuits took, and uses new ones')
    } catch (error) {
      this.#options.log.warn({ error: messageOf(error) }, 'tor could not be made to use new circuits')
    }
  }
}
