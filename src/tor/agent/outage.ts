import { messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import { readCircuits } from '../control/circuits.ts'
import type { ControlClient } from '../control/client.ts'

export interface OutageOptions {
  log: Logger
  /** The connection to tor that works, if any. */
  control(): Pick<ControlClient, 'getInfo' | 'delOnion'> | undefined
  /** tor was made to forget onions that it should have. */
  onForgotten(): void
  /** So long tor may bring introduction circuits back by itself; default 10 s, ten times what it takes. */
  graceMs?: number
}

/**
 * What an outage leaves behind. While nothing can be reached, tor uses up the attempts that it grants an onion's
 * introduction circuits, within seconds where bridges refuse, and then rests for up to five minutes, with the onion
 * published and unreachable. Such onions are taken from it, to be added anew.
 */
export class Outage {
  readonly #options: OutageOptions
  #timer: NodeJS.Timeout | undefined

  constructor(options: OutageOptions) {
    this.#options = options
  }

  /** The network can be reached again. */
  over(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#look(), this.#options.graceMs ?? 10_000)
    this.#timer.unref()
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  async #look(): Promise<void> {
    const control = this.#options.control()
    if (control === undefined) return
    try {
      const lists = await control.getInfo('circuit-status', 'onions/detached')
      const gone = withoutIntroduction(lists['circuit-status']!, lists['onions/detached']!)
      if (gone.length === 0) return
      this.#options.log.warn({ onions: gone.length }, 'onions did not outlive an outage: they are added anew')
      for (const address of gone) await control.delOnion(address)
      this.#options.onForgotten()
    } catch (error) {
      this.#options.log.warn({ error: messageOf(error) }, 'could not look after onions after an outage')
      this.#options.onForgotten()
    }
  }
}

/**
 * Onions that nobody can be introduced to.
 *
 * @param circuits GETINFO circuit-status
 * @param onions GETINFO onions/detached
 */
export function withoutIntroduction(circuits: string, onions: string): string[] {
  const introduced = new Set(
    readCircuits(circuits)
      .filter(({ hsState }) => hsState === 'HSSI_ESTABLISHED')
      .map(({ onion }) => onion),
  )
  return onions.split(/\s+/).filter((address) => address !== '' && !introduced.has(address))
}
