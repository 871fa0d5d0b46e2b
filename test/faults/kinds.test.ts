import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'
import { describeWithKubernetes } from '../../testbed/kubernetes/left-out.ts'
import { eventually, none, seconds } from './eventually.ts'
import type { FaultProxy } from './fault-proxy.ts'
import { Operator, OperatorProcess } from './operator.ts'
import type { Space } from './space.ts'
import { World } from './world.ts'

/** Kinds that are not there yet, and kinds that go away under the operator. */

const KINDS = ['onionservices', 'onionproxies', 'tordaemons']
const crd = (plural: string): string => `crd/${plural}.tor.fr0st.dev`
/** The garbage collector looks for new kinds every 30 s, and keeps what it cannot judge until then. */
const COLLECTED = 180_000

describeWithKubernetes('the kinds', () => {
  const stack = new AsyncDisposableStack()
  let world: World
  let proxy: FaultProxy
  let operator: Operator
  let one: Space
  let other: Space

  before(async () => {
    world = stack.use(await World.start({ kinds: false }))
    proxy = stack.use(await world.proxy())
  })
  after(() => stack.disposeAsync())

  test('missing at the start: it says which, waits, and begins once they are installed', async (t) => {
    await using process = await OperatorProcess.start(proxy.kubeconfig, '--no-leader-elect')
    await eventually('readiness to name them', async () => {
      const said = await process.troubles()
      const named = KINDS.filter((plural) =>
        said.some((line) => line.includes(`${plural}.tor.fr0st.dev is not installed: apply those of this`)),
      )
      return named.length === KINDS.length || said
    })
    assert.deepEqual(proxy.writes(), [])
    await world.installKinds()
    const since = performance.now()
    await eventually('it to be ready', async () => none(await process.troubles()))
    t.diagnostic(`installed: ready after ${seconds(performance.now() - since)}`)
    ;[one, other] = await world.usual('kinds')
    await world.declared()
    // Once, not at every try.
    assert.equal(process.log.filter(({ msg }) => msg === 'waits for the kinds').length, 1)
  })

  test('TorDaemon deleted and made again: the daemons that are needed come back', async (t) => {
    operator = stack.use(await Operator.start(proxy.kubeconfig))
    await world.declared()
    await world.kubectl('delete', crd('tordaemons'), '--timeout=60s')
    other.daemons.clear()
    await one.onion('meanwhile')
    await eventually('it to be said', () => {
      const said = operator.troubles()
      return said.some((line) => line.startsWith('tordaemons: ')) || said
    })
    await world.installKinds()
    await world.settled(t, operator, proxy, performance.now(), 'TorDaemon made again', COLLECTED)
    const conditions = (await other.get(ONION_SERVICE, 'news')).status?.conditions
    assert.equal(conditions?.find(({ type }) => type === 'Published')?.reason, 'DaemonNotFound')
    await other.daemon('second', {})
    await world.settled(
      t,
      operator,
      proxy,
      performance.now(),
      'a daemon that a user declares anew',
      COLLECTED,
    )
  })

  test('OnionService and OnionProxy: only keys stay, and they can be declared again', async (t) => {
    await world.kubectl('delete', crd('onionservices'), crd('onionproxies'), '--timeout=60s')
    for (const space of world.spaces) {
      for (const name of space.onions.keys()) space.gone.add(name)
      space.onions.clear()
      space.proxies.clear()
    }
    await world.installKinds()
    const made = performance.now()
    await world.settled(t, operator, proxy, made, 'kinds made again, nothing declared', COLLECTED)
    const keys = await world.kubectl(
      'get',
      'secret/web-onion-key',
      '-n',
      one.namespace,
      '-o',
      'jsonpath={.data}',
    )
    for (const space of world.spaces) {
      await space.onion('web')
      await space.proxy('irc', [6697])
    }
    await world.settled(t, operator, proxy, performance.now(), 'declared again', COLLECTED)
    const now = await world.kubectl(
      'get',
      'secret/web-onion-key',
      '-n',
      one.namespace,
      '-o',
      'jsonpath={.data}',
    )
    assert.equal(now, keys, 'the same name has the same address again')
    assert.deepEqual(operator.lines('error'), [])
  })
})
