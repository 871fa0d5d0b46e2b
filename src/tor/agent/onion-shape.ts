import { once } from '../../core/once.ts'
import type { OnionPlan } from '../contract.ts'

/**
 * All that ADD_ONION is told of an onion beside its key, as a text: tor cannot be asked for it, nor change it, so an
 * onion whose shape is another is removed and added again. The same in another order is the same. Worked out once a
 * plan: it is asked for at each step.
 */
export const shapeOf: (onion: Omit<OnionPlan, 'name' | 'address' | 'since'>) => string = once(
  ({ ports, clients, circuitIds, pow, streams, renewal = 0 }) =>
    JSON.stringify([
      ports.map(({ virtualPort }) => virtualPort).sort((a, b) => a - b),
      clients === undefined ? null : [...clients].sort(),
      circuitIds === true,
      pow === undefined ? null : [pow.queueRate, pow.queueBurst],
      streams === undefined ? null : [streams.max, streams.closeCircuit],
      renewal,
    ]),
)

/**
 * Addresses of onions that left, or are to be something else now: what was refused of them before says nothing any more.
 */
export function changedShapes(before: readonly OnionPlan[], after: readonly OnionPlan[]): string[] {
  const shapes = new Map(after.map((onion) => [onion.address, shapeOf(onion)]))
  return before.filter((onion) => shapes.get(onion.address) !== shapeOf(onion)).map(({ address }) => address)
}

/**
 * Whether somebody who could connect before cannot any more.
 *
 * @param before public keys of the clients; undefined: everybody
 */
export function shutsOut(
  before: readonly string[] | undefined,
  after: readonly string[] | undefined,
): boolean {
  if (after === undefined) return false
  return before === undefined || before.some((client) => !after.includes(client))
}
