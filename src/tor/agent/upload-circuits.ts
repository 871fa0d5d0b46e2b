import { type Circuit, circuitsOf } from '../control/circuits.ts'
import type { ControlClient } from '../control/client.ts'

/**
 * Closes the circuits of descriptor uploads once they are idle. tor keeps each for ten minutes, and tries every
 * waiting stream against every open circuit: with 16 uploads an onion, that search is what many onions at once
 * would spend their time on (docs/benchmarks.md).
 */

/** Between two looks, while there are such circuits. */
const SWEEP_MS = 500
/** A circuit that was built just now may be about to get its stream. */
const IDLE_MS = 1_000

type Control = Pick<ControlClient, 'getInfo' | 'closeCircuit'>

/** Identifiers of the built ones that carry, or carried, an upload. */
export function uploadCircuits(circuits: readonly Circuit[]): string[] {
  return circuits
    .filter(({ state, purpose }) => state === 'BUILT' && purpose === 'HS_SERVICE_HSDIR')
    .map(({ id }) => id)
}

export class UploadCircuits {
  readonly #control: () => Control | undefined
  readonly #now: () => number
  /** When each was first seen built. */
  #seen = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  #asked = false
  #closed = false

  constructor(control: () => Control | undefined, now: () => number = () => performance.now()) {
    this.#control = control
    this.#now = now
  }

  /** An upload was asked for: its circuit will be idle before long. */
  asked(): void {
    this.#asked = true
    this.#schedule()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  /** One look; goes on by itself until no such circuit is left. */
  async sweep(): Promise<void> {
    const control = this.#control()
    this.#asked = false
    if (control === undefined) return this.#seen.clear()
    try {
      const circuits = uploadCircuits(await circuitsOf(control))
      const now = this.#now()
      const seen = new Map(circuits.map((id) => [id, this.#seen.get(id) ?? now]))
      this.#seen = seen
      for (const [id, since] of seen) {
        // IfUnused: one with a stream stays, whatever we believe.
        if (now - since >= IDLE_MS) await control.closeCircuit(id, { ifUnused: true }).catch(() => {})
      }
    } catch {
      // The connection was lost: another tor, or another look, starts over.
      this.#seen.clear()
    }
    if (this.#seen.size > 0 || this.#asked) this.#schedule()
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#closed) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.sweep()
    }, SWEEP_MS)
    this.#timer.unref()
  }
}
