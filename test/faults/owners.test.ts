import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  CONFIG_MAP,
  DEPLOYMENT,
  NETWORK_POLICY,
  POD_DISRUPTION_BUDGET,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
} from '../../src/cluster/kinds.ts'
import type { Condition } from '../../src/core/conditions.ts'
import type { Kind } from '../../src/core/resource.ts'
import { ONION_PROXY } from '../../src/tor/api/onion-proxy.ts'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'
import { TOR_DAEMON } from '../../src/tor/api/tor-daemon.ts'
import { describeWithKubernetes } from '../../testbed/kubernetes/left-out.ts'
import { eventually, seconds } from './eventually.ts'
import { written } from './operator.ts'
import type { Space } from './space.ts'
import { stage } from './stage.ts'
import { managersOf, quiet } from './world.ts'

/** Others who write: to our objects, beside ours, and under the names that we would use. */

describeWithKubernetes('other owners', () => {
  let one: Space
  const set = stage({}, async (world) => {
    ;[one] = await world.usual('owners')
  })

  const patch = (type: 'merge' | 'strategic', what: string, body: object): Promise<string> =>
    set.world.kubectl('patch', what, '-n', one.namespace, `--type=${type}`, '-p', JSON.stringify(body))

  test('edits of our objects are set right, and what users add survives', async (t) => {
    const { world, operator, proxy } = set
    const begun = performance.now()
    await patch('merge', 'configmap/tor-topology', { data: { 'topology.json': '{}', mine: 'kept' } })
    await patch('strategic', 'deployment/tor', {
      metadata: { labels: { team: 'news' }, annotations: { note: 'mine' } },
      spec: { template: { spec: { containers: [{ name: 'agent', image: 'somebody/else:1' }] } } },
    })
    await patch('merge', 'networkpolicy/tor', { spec: { ingress: [{}] } })
    await patch('merge', 'poddisruptionbudget/tor', { spec: { maxUnavailable: 0 } })
    await patch('merge', 'serviceaccount/tor', { automountServiceAccountToken: true })
    await patch('merge', 'service/irc', {
      metadata: { annotations: { 'example.org/exposed': 'yes' } },
      spec: { selector: { app: 'other' } },
    })
    await world.kubectl('delete', 'service/tor-metrics', 'secret/tor-keys', '-n', one.namespace)
    await world.kubectl('label', 'onionservice/web', 'owner=me', '-n', one.namespace)
    await world.settled(t, operator, proxy, begun, 'edits by others')

    const deployment = await one.get(DEPLOYMENT, 'tor')
    assert.equal(deployment.metadata.labels?.team, 'news')
    assert.equal(deployment.metadata.annotations?.note, 'mine')
    const { data } = await one.get(CONFIG_MAP, 'tor-topology')
    assert.equal(data?.mine, 'kept')
    assert.equal((await one.get(SERVICE_ACCOUNT, 'tor')).automountServiceAccountToken, false)
    const { spec } = await one.get(POD_DISRUPTION_BUDGET, 'tor')
    assert.equal((spec as { maxUnavailable: number }).maxUnavailable, 1)
    const service = await one.get(SERVICE, 'irc')
    assert.equal(service.metadata.annotations?.['example.org/exposed'], 'yes')
    assert.equal(service.spec?.selector?.['app.kubernetes.io/name'], 'tor')
    assert.equal((await one.get(ONION_SERVICE, 'web')).metadata.labels?.owner, 'me')
  })

  test('no fight: the same looked at many times is not written again', async (t) => {
    const { world, proxy } = set
    await quiet(proxy)
    proxy.forget()
    for (let round = 0; round < 20; round++) {
      const labels = { round: String(round) }
      const label = (kind: Kind, name: string): Promise<unknown> =>
        world.apply(kind, { metadata: { namespace: one.namespace, name, labels } }, 'a-labeller')
      await label(DEPLOYMENT, 'tor')
      await label(CONFIG_MAP, 'tor-topology')
      await label(SERVICE, 'web')
    }
    await quiet(proxy)
    t.diagnostic(`writes in 60 changes that are no business of ours: ${written(proxy).length}`)
    assert.deepEqual(written(proxy), [])
  })

  test('one who insists gets one answer a try, and in the end it is ours', async (t) => {
    const { world, operator, proxy } = set
    proxy.forget()
    const data = { 'topology.json': '{}' }
    const metadata = { namespace: one.namespace, name: 'tor-topology' }
    for (let round = 0; round < 10; round++) {
      await world.apply(CONFIG_MAP, { metadata, data: { ...data, round: String(round) } })
      await eventually('it to be set right', async () => {
        const { data: found } = await one.get(CONFIG_MAP, 'tor-topology')
        return found?.['topology.json'] !== '{}' || ['not yet']
      })
    }
    await world.settled(t, operator, proxy, performance.now(), 'ten edits of the topology')
    const answers = written(proxy).filter((line) => line.includes('tor-topology'))
    t.diagnostic(`${answers.length} writes to the topology for 10 edits`)
    assert.ok(answers.length >= 10 && answers.length <= 20, answers.join('\n'))
  })

  interface Obstacle {
    kind: Kind
    name: string
    content: object
    /** Whose condition names it. */
    told: { kind: Kind; name: string; type: string; reason: string }
  }
  const daemon = { kind: TOR_DAEMON, name: 'tor', type: 'TopologyApplied', reason: 'NameTaken' }
  const spec = { ports: [{ port: 80 }] }
  const pod = {
    selector: { matchLabels: { app: 'mine' } },
    replicas: 0,
    template: { metadata: { labels: { app: 'mine' } }, spec: { containers: [{ name: 'a', image: 'b' }] } },
  }
  const obstacles: Obstacle[] = [
    { kind: DEPLOYMENT, name: 'tor', content: { spec: pod }, told: daemon },
    { kind: CONFIG_MAP, name: 'tor-topology', content: { data: { a: 'b' } }, told: daemon },
    { kind: SECRET, name: 'tor-keys', content: { stringData: { a: 'b' } }, told: daemon },
    { kind: SERVICE_ACCOUNT, name: 'tor', content: {}, told: daemon },
    {
      kind: POD_DISRUPTION_BUDGET,
      name: 'tor',
      content: { spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'mine' } } } },
      told: daemon,
    },
    {
      kind: NETWORK_POLICY,
      name: 'tor',
      content: { spec: { podSelector: { matchLabels: { app: 'mine' } } } },
      told: daemon,
    },
    { kind: SERVICE, name: 'tor-metrics', content: { spec }, told: daemon },
    {
      kind: SERVICE,
      name: 'irc',
      content: { spec },
      told: { kind: ONION_PROXY, name: 'irc', type: 'PortsAccepted', reason: 'ServiceNameTaken' },
    },
    {
      kind: SECRET,
      name: 'web-onion-key',
      content: { stringData: { a: 'b' } },
      told: { kind: ONION_SERVICE, name: 'web', type: 'KeyValid', reason: 'NameTaken' },
    },
  ]

  test('names that are taken: never adopted, named in a condition, healed once they are free', async (t) => {
    const { world, operator, proxy } = set
    const places = await Promise.all(
      obstacles.map(async (obstacle, index) => {
        const space = await world.space(`taken-${index}`)
        const { resourceVersion } = (await space.apply(obstacle.kind, obstacle.name, obstacle.content))
          .metadata
        await space.service('web')
        await space.onion('web')
        await space.proxy('irc', [6697])
        return { ...obstacle, space, resourceVersion }
      }),
    )
    for (const { kind, name, space, told } of places) {
      const what = `${kind.kind} ${name}`
      await eventually(
        `${what} to be named in ${told.type} of ${told.kind.kind} ${told.name}`,
        async () => {
          const { status } = await space.get(told.kind, told.name)
          const { conditions = [] } = (status ?? {}) as { conditions?: Condition[] }
          const found = conditions.find(({ type }) => type === told.type)
          const named =
            found?.reason === told.reason && found.message.includes(kind.kind) && found.message.includes(name)
          return named || conditions.map((condition) => JSON.stringify(condition))
        },
        60_000,
      )
    }
    for (const { kind, name, space } of places) {
      const found = await space.get(kind, name)
      const what = `${kind.kind} ${space.namespace}/${name}`
      assert.deepEqual(
        managersOf(found).filter((manager) => manager.startsWith('postern')),
        [],
        what,
      )
      assert.equal(found.metadata.ownerReferences, undefined, what)
    }
    const freed = performance.now()
    await Promise.all(places.map(({ kind, name, space }) => space.remove(kind, name)))
    await world.settled(t, operator, proxy, freed, 'names are free')
    t.diagnostic(`${places.length} names were taken; ${seconds(performance.now() - freed)} in all`)
  })
})
