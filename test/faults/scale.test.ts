import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'
import { describeWithKubernetes } from '../../testbed/kubernetes/left-out.ts'
import { eventually, none, seconds } from './eventually.ts'
import type { FaultProxy } from './fault-proxy.ts'
import { OperatorProcess, written } from './operator.ts'
import { quiet, World } from './world.ts'

/** Much of everything, there already when the operator starts. */

/** 10 in each test run, for their time; 100, which is 10,000 onions, was run by hand and is in `bench operator`. */
const NAMESPACES = Number(process.env.POSTERN_TEST_NAMESPACES ?? 10)
const ONIONS = 100
const LONG = { timeout: 900_000 }

describeWithKubernetes(`${NAMESPACES * ONIONS} OnionServices`, () => {
  const stack = new AsyncDisposableStack()
  let world: World
  let proxy: FaultProxy

  before(async () => {
    world = stack.use(await World.start())
    proxy = stack.use(await world.proxy())
  })
  after(() => stack.disposeAsync())

  const start = (): Promise<OperatorProcess> =>
    OperatorProcess.start(proxy.kubeconfig, '--no-leader-elect', '--log-level', 'info')

  const warm = (operator: OperatorProcess): Promise<number> =>
    eventually('the caches to be warm', () => {
      return operator.said('caches are warm') !== undefined || [operator.output.slice(-500)]
    })

  test('are all served', LONG, async (t) => {
    const declared = performance.now()
    const work: (() => Promise<void>)[] = []
    for (let place = 0; place < NAMESPACES; place++) {
      const space = await world.space(`scale-${place}`)
      await space.service('web')
      for (let index = 0; index < ONIONS; index++) work.push(() => space.onion(`web-${index}`))
    }
    await Promise.all(
      Array.from({ length: 24 }, async () => {
        for (let next = work.pop(); next !== undefined; next = work.pop()) await next()
      }),
    )
    t.diagnostic(`declared in ${seconds(performance.now() - declared)}`)

    await using operator = await start()
    const started = performance.now()
    await warm(operator)
    t.diagnostic(`caches warm after ${seconds(performance.now() - started)}`)
    await quiet(proxy, 600_000)
    const writes = proxy.writes()
    t.diagnostic(`${writes.length} writes; the last after ${seconds(writes.at(-1)!.at - started)}`)
    t.diagnostic(JSON.stringify(proxy.counts()))
    await world.declared(300_000)
    t.diagnostic(`resident: ${JSON.stringify(operator.memory())} MB`)

    proxy.forget()
    proxy.tear('reset')
    await eventually('it to be ready', async () => none(await operator.troubles()))
    const changed = performance.now()
    const space = world.spaces[0]!
    await space.onion('web-0', { ports: { 81: { service: 'web', port: 80 } } })
    await eventually('the change to be observed', async () => {
      const { metadata, status } = await space.get(ONION_SERVICE, 'web-0')
      return status?.observedGeneration === metadata.generation || [JSON.stringify(status)]
    })
    t.diagnostic(`one of them changed: observed after ${seconds(performance.now() - changed)}`)
    await quiet(proxy)
    t.diagnostic(`its writes: ${written(proxy).join(', ')}`)
    // The topology, the pod that is to look at it, and the status.
    assert.ok(written(proxy).length <= 3, written(proxy).join('\n'))
    operator.child.kill('SIGTERM')
    assert.equal(await operator.ended, 0)
  })

  test('and a restart looks at all of them and writes nothing', LONG, async (t) => {
    proxy.forget()
    await using operator = await start()
    const started = performance.now()
    await warm(operator)
    t.diagnostic(`caches warm after ${seconds(performance.now() - started)}`)
    await eventually('every daemon to be looked at', async () => {
      const done = await operator.metric(
        'postern_controller_reconcile_total{controller="tor",result="success"}',
      )
      const waiting = await operator.metric('postern_workqueue_depth{name="tor"}')
      return (done >= NAMESPACES && waiting === 0) || [`${done} done, ${waiting} waiting`]
    })
    t.diagnostic(`all looked at after ${seconds(performance.now() - started)}`)
    await quiet(proxy)
    t.diagnostic(`resident: ${JSON.stringify(operator.memory())} MB`)
    assert.deepEqual(written(proxy), [])
    assert.deepEqual(await world.touched(), [])
  })
})
