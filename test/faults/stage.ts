import { after, afterEach, before } from 'node:test'
import type { FaultProxy } from './fault-proxy.ts'
import { Operator, type OperatorOptions } from './operator.ts'
import { World, type WorldOptions } from './world.ts'

/** A world of a suite's own, with an operator in this process that reaches it through a proxy. */
export interface Stage {
  readonly world: World
  readonly proxy: FaultProxy
  readonly operator: Operator
}

/**
 * Sets the stage before the tests of a suite, and clears it after them.
 *
 * @param declare what there is before the first test; it is waited for
 */
export function stage(
  options: WorldOptions & OperatorOptions,
  declare: (world: World) => Promise<unknown>,
): Stage {
  const stack = new AsyncDisposableStack()
  let set: Stage | undefined
  before(async () => {
    const world = stack.use(await World.start(options))
    const proxy = stack.use(await world.proxy())
    const operator = stack.use(await Operator.start(proxy.kubeconfig, options))
    set = { world, proxy, operator }
    await declare(world)
    await world.declared()
  })
  // A test that failed leaves no fault to the next one.
  afterEach(() => set?.proxy.calm())
  after(() => stack.disposeAsync())
  const there = (): Stage => {
    if (set === undefined) throw new Error('the stage is not set before the suite begins')
    return set
  }
  return {
    get world() {
      return there().world
    },
    get proxy() {
      return there().proxy
    },
    get operator() {
      return there().operator
    },
  }
}
