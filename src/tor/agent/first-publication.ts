import type { OnionState } from '../contract.ts'

/** One onion that cannot be published must not hold back a whole pod for ever. */
const LIMIT_MS = 120_000
const NAMED = 5

/**
 * What a new pod waits for before it is ready, and only once: that every onion which was there when tor first
 * bootstrapped is published. So a rollout ends the old pod only when visitors find the new one. An onion that
 * failed for a reason of its own, was removed, or came later is not waited for.
 */
export class FirstPublication {
  /** Addresses; undefined until tor has bootstrapped. */
  #waiting: Set<string> | undefined
  #since = 0
  #over = false

  /** @param now milliseconds of a clock that never jumps */
  look(bootstrapped: boolean, onions: readonly OnionState[], now: number): void {
    if (this.#over) return
    if (this.#waiting === undefined) {
      if (!bootstrapped) return
      this.#since = now
      this.#waiting = new Set(onions.map(({ address }) => address))
    }
    const pending = new Map(onions.map(({ address, state }) => [address, state]))
    for (const address of this.#waiting) {
      const state = pending.get(address)
      if (state !== 'waiting' && state !== 'added') this.#waiting.delete(address)
    }
    this.#over = this.#waiting.size === 0
  }

  /** What is still waited for, for a person; undefined: nothing, now and from now on, or tor is not bootstrapped. */
  pending(onions: readonly OnionState[], now: number): string | undefined {
    const waiting = this.#waiting
    if (this.#over || waiting === undefined) return undefined
    if (now - this.#since > LIMIT_MS) {
      this.#over = true
      return undefined
    }
    const names = onions.filter(({ address }) => waiting.has(address)).map(({ name }) => name)
    const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : ''
    return `onions are being published for the first time: ${names.slice(0, NAMED).join(', ')}${more}`
  }
}
