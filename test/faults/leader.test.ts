import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LEASE } from '../../src/cluster/kinds.ts'
import { KubernetesCluster } from '../../src/cluster/kubernetes/cluster.ts'
import { connect, loadSettings } from '../../src/cluster/kubernetes/connect.ts'
import { type Leadership, runWithLeadership } from '../../src/controller/leader.ts'
import { OPERATOR_LEASE } from '../../src/controller/permissions.ts'
import { SILENT } from '../../src/core/logger.ts'
import { describeWithKubernetes } from '../../testbed/kubernetes/left-out.ts'
import { eventually, none, seconds } from './eventually.ts'
import type { FaultProxy } from './fault-proxy.ts'
import { OperatorProcess, written } from './operator.ts'
import type { Space } from './space.ts'
import { quiet, World } from './world.ts'

/** Two replicas as processes of their own, each behind a proxy of its own, that counts what it writes. */

interface Replica {
  name: string
  proxy: FaultProxy
  operator: OperatorProcess
}

describeWithKubernetes('the leader', () => {
  const stack = new AsyncDisposableStack()
  let world: World
  let one: Space
  let other: Space

  before(async () => {
    world = stack.use(await World.start())
    await world.namespace('postern-system')
    ;[one, other] = await world.usual('leader')
  })
  after(() => stack.disposeAsync())

  async function start(name: string): Promise<Replica> {
    const proxy = stack.use(await world.proxy())
    const operator = stack.use(await OperatorProcess.start(proxy.kubeconfig, '--identity', name))
    return { name, proxy, operator }
  }

  async function holder(): Promise<string | undefined> {
    const lease = await world.admin.get(LEASE, { namespace: 'postern-system', name: OPERATOR_LEASE })
    return lease.spec?.holderIdentity
  }

  const leads = ({ name, operator }: Replica, limit = 120_000): Promise<number> =>
    eventually(
      `${name} to lead`,
      async () => {
        const found = await holder()
        return (
          found === name || [`${found} leads`, ...operator.log.slice(-5).map((line) => JSON.stringify(line))]
        )
      },
      limit,
    )

  const standsBy = ({ name, operator }: Replica): Promise<number> =>
    eventually(`${name} to stand by`, async () =>
      operator.said('another one leads; waits')
        ? none(await operator.troubles())
        : [operator.output.slice(-500)],
    )

  /** Everything as it should be, and made once: a second hand would have left a second entry or another generation. */
  async function once(): Promise<void> {
    for (const { namespace } of [one, other]) {
      const deployments = JSON.parse(
        await world.kubectl('get', 'deployments', '-n', namespace, '-o', 'json', '--show-managed-fields'),
      ) as {
        items: { metadata: { name: string; generation: number; managedFields: { manager: string }[] } }[]
      }
      for (const { metadata } of deployments.items) {
        const ours = metadata.managedFields.filter(({ manager }) => manager.startsWith('postern'))
        assert.deepEqual(
          [metadata.generation, ours.length],
          [1, 1],
          `Deployment ${namespace}/${metadata.name}`,
        )
      }
    }
    assert.deepEqual(await world.touched(), [])
  }

  test('is killed with -9, another takes over; it is frozen, and writes nothing when it wakes', async (t) => {
    const first = await start('first')
    await leads(first)
    const second = await start('second')
    await standsBy(second)
    await world.declared()
    await quiet(first.proxy)
    assert.deepEqual(written(second.proxy), [], 'a replica that stands by writes nothing')

    first.operator.child.kill('SIGKILL')
    const killed = performance.now()
    assert.equal(await first.operator.ended, 'SIGKILL')
    await one.onion('between')
    await other.onion('web', { ports: { 8080: { service: 'web', port: 80 } } })
    await leads(second)
    t.diagnostic(
      `killed with -9: another leads after ${seconds(performance.now() - killed)} (a Lease is for 15 s)`,
    )
    await world.declared()
    t.diagnostic(`killed with -9: the world as declared after ${seconds(performance.now() - killed)}`)
    await quiet(second.proxy)
    await once()
    // The new onion has a key, and both namespaces another topology that pods are to look at.
    const expected = /create secrets leader-one|onionservices|tor-topology|tor-keys|pods/
    const repeated = written(second.proxy, 'leases').filter((line) => !expected.test(line))
    assert.deepEqual(repeated, [], 'what did not change is not written anew')
    assert.equal(
      second.proxy.calls.filter(({ verb, plural }) => verb === 'create' && plural === 'secrets').length,
      1,
    )

    const third = await start('third')
    await standsBy(third)
    second.operator.child.kill('SIGSTOP')
    const frozen = performance.now()
    await leads(third)
    t.diagnostic(`frozen: another leads after ${seconds(performance.now() - frozen)}`)
    await one.onion('while-frozen')
    await world.declared()
    await quiet(third.proxy)
    const before = second.proxy.writes().length
    second.operator.child.kill('SIGCONT')
    assert.equal(await second.operator.ended, 6, second.operator.output.slice(-1000))
    const late = second.proxy
      .writes()
      .slice(before)
      .filter(({ status }) => status > 0 && status < 300)
    assert.deepEqual(late, [], 'a leader that wakes up too late writes nothing')
    assert.equal(await holder(), 'third')
    await once()

    const last = await start('last')
    await standsBy(last)
    third.operator.child.kill('SIGTERM')
    const asked = performance.now()
    assert.equal(await third.operator.ended, 0, third.operator.output.slice(-1000))
    await leads(last)
    t.diagnostic(`asked to end: another leads after ${seconds(performance.now() - asked)}`)
    await one.onion('after')
    await world.declared()
    await once()
  })

  test('has a clock that jumps: it stays the leader, and the other waits', async (t) => {
    const cluster = (): KubernetesCluster => {
      const api = connect(loadSettings(world.access), { component: 'test', version: '0.0.0' })
      stack.defer(() => api.close())
      return stack.adopt(new KubernetesCluster(api, { log: SILENT, kinds: [LEASE] }), (one) => one.close())
    }
    const name = 'clock'
    let jump = 0
    const terms: string[] = []
    const candidate = (identity: string, now: () => number): Leadership =>
      runWithLeadership({
        cluster: cluster(),
        namespace: 'postern-system',
        name,
        identity,
        log: SILENT,
        now,
        onStarted: (signal) => {
          terms.push(identity)
          return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
        },
      })
    const jumping = candidate('jumping', () => Date.now() + jump)
    await eventually('it to lead', () => jumping.leads() || [jumping.problem() ?? 'not yet'])
    const steady = candidate('steady', Date.now)
    const renewals = async (): Promise<string | undefined> =>
      (await world.admin.get(LEASE, { namespace: 'postern-system', name })).spec?.renewTime
    for (const day of [86_400_000, -86_400_000, 0]) {
      jump = day
      for (let round = 0; round < 2; round++) {
        const before = await renewals()
        await eventually('the Lease to be renewed', async () => (await renewals()) !== before || ['not yet'])
      }
      t.diagnostic(`clock off by ${day / 3_600_000} h: renewed at ${await renewals()}`)
      assert.equal(jumping.leads(), true)
    }
    assert.deepEqual(terms, ['jumping'])
    await jumping.close()
    await eventually('the other to lead', () => steady.leads() || [steady.problem() ?? 'not yet'])
    await steady.close()
  })
})
