import { setTimeout as pause } from 'node:timers/promises'
import { codeOf, messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import { type Circuit, circuitsOf } from '../control/circuits.ts'
import type { ControlClient } from '../control/client.ts'

/**
 * Whether a tor gets anywhere, whoever else cannot be reached: it is asked to build a circuit, along the way of one that
 * it has. A tor whose network is away goes on calling itself bootstrapped.
 */

export interface NetworkCheckOptions {
  control(): Pick<ControlClient, 'getInfo' | 'command' | 'closeCircuit'> | undefined
  log: Logger
  /** What was found counts for so long; default 30 s. */
  validMs?: number
  /** For a circuit; default 20 s. */
  timeoutMs?: number
}

const LOOK_MS = 100

export class NetworkCheck {
  readonly #options: NetworkCheckOptions
  #newest: { at: number; answer: Promise<boolean> } | undefined

  constructor(options: NetworkCheckOptions) {
    this.#options = options
  }

  /** Never rejects: without an answer nothing is known to work. Many who ask at a time share one answer. */
  works(): Promise<boolean> {
    const now = performance.now()
    if (this.#newest === undefined || now - this.#newest.at > (this.#options.validMs ?? 30_000)) {
      this.#newest = { at: now, answer: this.#ask() }
    }
    return this.#newest.answer
  }

  async #ask(): Promise<boolean> {
    const control = this.#options.control()
    if (control === undefined) return false
    try {
      for (const path of waysOf(await circuitsOf(control)).slice(0, 3)) {
        if (await this.#builds(control, path)) return true
      }
    } catch (error) {
      this.#options.log.debug({ error: messageOf(error) }, 'could not look whether tor gets anywhere')
    }
    return false
  }

  async #builds(
    control: NonNullable<ReturnType<NetworkCheckOptions['control']>>,
    path: string,
  ): Promise<boolean> {
    const end = performance.now() + (this.#options.timeoutMs ?? 20_000)
    const reply = await control.command(`EXTENDCIRCUIT 0 ${path} purpose=controller`)
    const id = /^EXTENDED ([A-Za-z0-9]{1,16})$/.exec(reply.lines.at(-1)?.text ?? '')?.[1]
    if (id === undefined) return false
    try {
      while (performance.now() < end) {
        const circuit = (await circuitsOf(control)).find((one) => one.id === id)
        if (circuit === undefined) return false
        if (circuit.state === 'BUILT') return true
        await pause(LOOK_MS)
      }
      return false
    } finally {
      await control.closeCircuit(id).catch((error) => {
        if (codeOf(error) !== 'ControlRefused')
          this.#options.log.debug({ error: messageOf(error) }, 'circuit stays')
      })
    }
  }
}

/** First three relays of circuits that stand, as EXTENDCIRCUIT takes them, each way once; the newest circuit first. */
export function waysOf(circuits: readonly Circuit[]): string[] {
  const ways = circuits.flatMap(({ state, path }) => {
    const relays = path.slice(0, 3).map((relay) => /^(\$[0-9A-F]{40})([~=]\w{1,19})?$/.exec(relay)?.[1])
    if (state !== 'BUILT' || relays.length !== 3 || relays.includes(undefined)) return []
    return [relays.join(',')]
  })
  return [...new Set(ways.reverse())]
}
