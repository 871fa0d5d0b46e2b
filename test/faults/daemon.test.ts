import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  DEPLOYMENT,
  NETWORK_POLICY,
  PERSISTENT_VOLUME_CLAIM,
  SERVICE,
  type Service,
} from '../../src/cluster/kinds.ts'
import type { Condition } from '../../src/core/conditions.ts'
import type { Resource } from '../../src/core/resource.ts'
import { TOR_DAEMON } from '../../src/tor/api/tor-daemon.ts'
import { describeWithKubernetes } from '../../testbed/kubernetes/left-out.ts'
import { eventually, type Seen } from './eventually.ts'
import type { Space } from './space.ts'
import { stage } from './stage.ts'
import { quiet } from './world.ts'

/** What a user changes of a daemon, as a real API server takes it: fields come and go, and are not just merged. */

interface Strategy {
  spec: { strategy: { type: string; rollingUpdate?: object } }
}

describeWithKubernetes('a daemon and what is wished of it', () => {
  let space: Space
  const set = stage({}, async (world) => {
    space = await world.space('whole')
    await space.daemon('tor', {})
  })

  /** Undefined: it is not there, or is just being removed. */
  async function find(kind: Parameters<Space['get']>[0], name: string): Promise<Resource | undefined> {
    try {
      const found = await space.get(kind, name)
      return found.metadata.deletionTimestamp === undefined ? found : undefined
    } catch {
      return undefined
    }
  }
  const strategy = async (): Promise<Strategy['spec']['strategy'] | undefined> =>
    ((await find(DEPLOYMENT, 'tor')) as unknown as Strategy | undefined)?.spec.strategy
  const until = (what: string, look: () => Promise<unknown>): Promise<number> =>
    eventually(what, async (): Promise<Seen> => {
      const seen = await look()
      return (
        seen === true || [
          JSON.stringify(seen),
          ...set.operator.lines('warn', 'error').map((line) => JSON.stringify(line)),
        ]
      )
    })

  test('a claim comes and goes, and with it how pods are replaced', async () => {
    await until('the Deployment', async () => (await strategy())?.type === 'RollingUpdate')
    await space.daemon('tor', { persistence: {} })
    await until(
      'pods that wait for each other',
      async () => (await strategy())?.type === 'Recreate' || strategy(),
    )
    // The API server refuses a Deployment that has both.
    assert.deepEqual(await strategy(), { type: 'Recreate' })
    const claim = await find(PERSISTENT_VOLUME_CLAIM, 'tor-state')
    assert.equal(claim?.metadata.ownerReferences?.[0]?.kind, 'TorDaemon')
    await quiet(set.proxy)

    await space.daemon('tor', {})
    await until(
      'pods that start beside each other',
      async () => (await strategy())?.type === 'RollingUpdate' || strategy(),
    )
    assert.deepEqual((await strategy())?.rollingUpdate, { maxSurge: 1, maxUnavailable: 0 })
    await until(
      'the claim to go',
      async () => (await find(PERSISTENT_VOLUME_CLAIM, 'tor-state')) === undefined,
    )

    await space.daemon('tor', { persistence: { accessMode: 'ReadWriteMany' } })
    await until('another claim', async () => {
      const spec = (await find(PERSISTENT_VOLUME_CLAIM, 'tor-state'))?.spec as
        | { accessModes: string[] }
        | undefined
      return spec?.accessModes[0] === 'ReadWriteMany' || spec
    })
    assert.equal((await strategy())?.type, 'RollingUpdate')
    await quiet(set.proxy)
  })

  test('a claim that cannot be changed is a condition', async () => {
    await space.daemon('tor', { persistence: { accessMode: 'ReadWriteOncePod' } })
    await until('the refusal', async () => {
      const { status } = await space.get(TOR_DAEMON, 'tor')
      const applied = (status?.conditions as Condition[] | undefined)?.find(
        ({ type }) => type === 'TopologyApplied',
      )
      return (applied?.reason === 'ObjectRefused' && /immutable/.test(applied.message)) || status
    })
    await space.daemon('tor', {})
    await until(
      'the claim to go',
      async () => (await find(PERSISTENT_VOLUME_CLAIM, 'tor-state')) === undefined,
    )
  })

  test('Services of SOCKS and HTTP CONNECT come and go, and the NetworkPolicy follows', async () => {
    const ports = async (): Promise<string> => {
      const services = await Promise.all(['tor-socks', 'tor-connect'].map((name) => find(SERVICE, name)))
      return services
        .map((one) =>
          (one as Service | undefined)?.spec?.ports?.map(({ name, port }) => `${name} ${port}`).join(),
        )
        .join('; ')
    }
    const opened = async (): Promise<number[]> => {
      const { spec } = (await space.get(NETWORK_POLICY, 'tor')) as unknown as {
        spec: {
          ingress: {
            from?: { podSelector?: object; namespaceSelector?: object }[]
            ports: { port: number }[]
          }[]
        }
      }
      const own = spec.ingress.filter(({ from }) => from?.every((one) => one.namespaceSelector === undefined))
      return own.flatMap((rule) => rule.ports.map(({ port }) => port))
    }
    await space.daemon('tor', { socks: {}, httpConnect: { port: 3128, exit: 'All' } })
    await until('both', async () => (await ports()) === 'socks 9050; http-connect 3128' || ports())
    assert.deepEqual(await opened(), [3128, 9050])
    const told = async (): Promise<string> => {
      const { status } = await space.get(TOR_DAEMON, 'tor')
      return `${status?.socks} ${status?.httpConnect}`
    }
    const both = 'tor-socks.whole.svc:9050 tor-connect.whole.svc:3128'
    await until('both in the status', async () => (await told()) === both || told())
    await space.daemon('tor', { socks: { port: 1080 } })
    await until('one, elsewhere', async () => (await ports()) === 'socks 1080; ' || ports())
    assert.deepEqual(await opened(), [1080])
    await until(
      'one in the status',
      async () => (await told()) === 'tor-socks.whole.svc:1080 undefined' || told(),
    )
    await space.daemon('tor', {})
    await until('none', async () => (await ports()) === '; ' || ports())
    assert.deepEqual(await opened(), [])
    await quiet(set.proxy)
  })
})
