import type { BridgeLine } from '../bridges/lines.ts'

/** Bridges as one tor is to use them. */
export interface BridgeSet {
  /** `ClientTransportPlugin` of tor. */
  plugin: string
  /** In canonical order: tor drops circuits for another order of the same lines. */
  bridges: readonly BridgeLine[]
}
