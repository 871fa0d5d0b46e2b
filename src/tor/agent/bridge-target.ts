import { parseLines } from '../bridges/lines.ts'
import { BRIDGES_FILE, type TorTopology } from '../contract.ts'
import type { BridgeSet } from './bridge-set.ts'
import { transportMissing, transportProgram } from './transport-program.ts'

/** Why tor is kept off the network. */
export interface NetworkProblem {
  reason: 'NoBridges' | 'TransportMissing' | 'NetworkRefused'
  message: string
}

/** Through a set; or, with a problem, not at all; or else directly. */
export type NetworkTarget = { set?: BridgeSet; problem?: NetworkProblem }

/** How tor should get at the network, by what was mounted. */
export class BridgeTarget {
  readonly #programs: string | undefined
  #text: string | undefined
  #wish: TorTopology['daemon']['bridges']
  /** The newest that could be used: what cannot be leaves it in force. */
  #usable: BridgeSet | undefined
  #rejected: string | undefined

  /** @param programs folder of the transports' programs */
  constructor(programs: string | undefined) {
    this.#programs = programs
  }

  use(text: string | undefined): void {
    this.#text = text
  }

  want(wish: TorTopology['daemon']['bridges']): void {
    this.#wish = wish
  }

  get wanted(): boolean {
    return this.#wish !== undefined
  }

  /** What of the file is not in force, and why. */
  get rejected(): string | undefined {
    return this.#rejected
  }

  async look(): Promise<NetworkTarget> {
    const wish = this.#wish
    this.#rejected = undefined
    if (wish === undefined) {
      this.#usable = undefined
      return {}
    }
    const { transport } = wish
    const text = this.#text
    const program = await transportProgram(transport, this.#programs)
    const { lines: bridges, refusedCount: unusable } = parseLines(text ?? '', [transport])
    if (program !== undefined && bridges.length > 0) {
      this.#usable = { plugin: `${transport} exec ${program}`, bridges }
      if (unusable > 0) {
        this.#rejected = `${unusable} lines of ${BRIDGES_FILE} are no bridges of the transport ${transport} and are left out`
      }
      return { set: this.#usable }
    }
    const problem: NetworkProblem =
      program === undefined
        ? { reason: 'TransportMissing', message: transportMissing(transport) }
        : { reason: 'NoBridges', message: noBridges(transport, text, unusable) }
    if (this.#usable === undefined) {
      problem.message += '; tor stays off the network, since it may only connect through bridges'
      return { problem }
    }
    this.#rejected = `${problem.message}; the ${this.#usable.bridges.length} bridges in force stay`
    return { set: this.#usable }
  }
}

function noBridges(transport: string, text: string | undefined, unusable: number): string {
  if (text === undefined) return `the keys hold no ${BRIDGES_FILE}`
  const others = unusable === 0 ? '' : `: ${unusable} lines cannot be used`
  return `${BRIDGES_FILE} holds no bridge of the transport ${transport}${others}`
}
