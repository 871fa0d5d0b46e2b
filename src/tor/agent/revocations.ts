import type { Logger } from '../../core/logger.ts'
import { circuitsOf } from '../control/circuits.ts'
import type { ControlClient } from '../control/client.ts'
import { ControlError } from '../control/errors.ts'

/** Onions that somebody may have open who may not any more; their visits are ended once it is asked for. */
export class Revocations {
  readonly #addresses = new Set<string>()
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  add(address: string): void {
    this.#addresses.add(address)
  }

  clear(): void {
    this.#addresses.clear()
  }

  /**
   * Ends the visits: tor leaves their circuits be when it forgets an onion, and takes new streams on them once it has that
   * onion again, with other clients too. Clients that may, come again. What failed is tried at the next time.
   */
  async run(control: ControlClient, nameOf: (address: string) => string | undefined): Promise<void> {
    if (this.#addresses.size === 0) return
    const visits = (await circuitsOf(control)).filter(({ purpose }) => purpose === 'HS_SERVICE_REND')
    for (const address of [...this.#addresses]) {
      const circuits = visits.filter(({ onion }) => onion === address)
      const closing = await Promise.allSettled(circuits.map(({ id }) => control.closeCircuit(id)))
      const failed = closing.find((one) => one.status === 'rejected' && !isGone(one.reason))
      if (failed?.status === 'rejected') throw failed.reason
      this.#addresses.delete(address)
      this.#log.info({ onion: nameOf(address), circuits: circuits.length }, 'clients revoked: visits ended')
    }
  }
}

/** The circuit had ended by itself. */
function isGone(error: unknown): boolean {
  return error instanceof ControlError && error.status === 552
}
