import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Registry } from 'prom-client'
import { customResourceDefinition } from '../../../scripts/generate/crd.ts'
import { EmbeddedCluster } from '../../cluster/embedded/cluster.ts'
import { Store } from '../../cluster/embedded/store.ts'
import { CONFIG_MAP, LEASE, type Lease } from '../../cluster/kinds.ts'
import { OperatorMetrics } from '../../controller/metrics.ts'
import { SILENT } from '../../core/logger.ts'
import { type Resource, refOf } from '../../core/resource.ts'
import { TOR_KINDS } from '../../tor/api/kinds.ts'
import type { Prepared, Preparing } from './controllers.ts'
import { CUSTOM_RESOURCE_DEFINITION } from './crds.ts'
import { Health } from './health.ts'
import { Lifecycle } from './lifecycle.ts'
import { readSettings } from './settings.ts'

/** What a test lets a controller do, and sees of it. */
class Played implements Prepared {
  readonly said: string[] = []
  readonly options: Preparing
  readonly ended: PromiseWithResolvers<void> = Promise.withResolvers<void>()

  constructor(options: Preparing) {
    this.options = options
  }

  start(): void {
    this.said.push('start')
  }

  async close(): Promise<void> {
    this.said.push('close')
    await this.ended.promise
    this.said.push('closed')
  }
}

interface Replica {
  lifecycle: Lifecycle
  health: Health
  controller: Played
  stop: AbortController
  done: Promise<void>
  leads(): Promise<number | undefined>
}

function place(t: TestContext): { cluster: EmbeddedCluster; store: Store } {
  const folder = mkdtempSync(join(tmpdir(), 'postern-lifecycle-'))
  const store = new Store(folder)
  const cluster = new EmbeddedCluster(store, [LEASE, CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION])
  t.after(() => {
    cluster.close()
    store.close()
    rmSync(folder, { recursive: true })
  })
  return { cluster, store }
}

const definitions = (): Resource[] =>
  TOR_KINDS.map((kind) => customResourceDefinition(kind) as unknown as Resource)

function replica(t: TestContext, cluster: EmbeddedCluster, identity: string, leaderElect = true): Replica {
  const registry = new Registry()
  let controller: Played | undefined
  const lifecycle = new Lifecycle({
    cluster,
    states: () => [{ name: 'pods', synced: true }],
    settings: readSettings({ torImage: 'x', identity, leaderElect }, {}),
    leaseNamespace: 'system',
    metrics: new OperatorMetrics({ registry, version: '0.0.0' }),
    log: SILENT,
    prepare: async (_name, options) => (controller = new Played(options)),
    retry: 10,
  })
  const health = new Health(lifecycle)
  const stop = new AbortController()
  const done = lifecycle.run(stop.signal)
  t.after(() => {
    controller!.ended.resolve()
    stop.abort()
    health.close()
    return done.catch(() => {})
  })
  const leads = async (): Promise<number | undefined> => {
    const text = await registry.getSingleMetricAsString('postern_leader_election_master_status')
    const value = /\{name="postern-operator"\} (\d)/.exec(text)?.[1]
    return value === undefined ? undefined : Number(value)
  }
  return { lifecycle, health, controller: controller!, stop, done, leads }
}

async function until(state: () => unknown, seen: () => unknown): Promise<void> {
  const end = performance.now() + 20_000
  while (!(await state())) {
    assert.ok(performance.now() < end, `still not: ${state}; ${JSON.stringify(seen())}`)
    await pause(5)
  }
}

test('kinds, then the Lease, then work; and back: work ends before the Lease is released', async (t) => {
  const { cluster, store } = place(t)
  const lease = (): Lease | undefined =>
    store.get({
      apiVersion: LEASE.apiVersion,
      kind: LEASE.kind,
      namespace: 'system',
      name: 'postern-operator',
    }) as Lease | undefined
  const first = replica(t, cluster, 'first')
  const seen = (): object => ({ lease: lease(), ready: first.health.ready(), said: first.controller.said })
  await until(() => /onionservices\S* is not installed/.test(first.health.ready() ?? ''), seen)
  assert.equal(lease(), undefined, 'no Lease before the kinds are there')
  for (const definition of definitions()) store.apply(definition, 'test')
  await until(() => first.lifecycle.phase() === 'working', seen)
  assert.deepEqual(first.controller.said, ['start'])
  assert.equal(first.health.ready(), undefined)
  assert.equal(await first.leads(), 1)
  assert.equal(lease()?.spec?.holderIdentity, 'first')

  const second = replica(t, cluster, 'second')
  await until(() => second.lifecycle.phase() === 'standing by', seen)
  assert.equal(second.health.ready(), undefined, 'who stands by with warm caches is ready')
  assert.deepEqual(second.controller.said, [])
  assert.equal(await second.leads(), 0)
  const map = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'x', name: 'y' },
    data: { a: 'b' },
  }
  await assert.rejects(second.controller.options.cluster.apply(map, 'm'), { code: 'Unavailable' })
  assert.equal(await first.controller.options.cluster.apply(map, 'm'), 'created')

  first.stop.abort()
  await until(() => first.controller.said.includes('close'), seen)
  assert.equal(first.health.ready(), 'is stopping')
  assert.equal(lease()?.spec?.holderIdentity, 'first')
  // What still runs may finish its writes.
  await first.controller.options.cluster.remove(refOf(map))
  first.controller.ended.resolve()
  await first.done
  assert.deepEqual(first.controller.said, ['start', 'close', 'closed'])
  assert.equal(await first.leads(), 0)
  await assert.rejects(first.controller.options.cluster.apply(map, 'm'), { code: 'Unavailable' })
  await until(
    () => second.lifecycle.phase() === 'working',
    () => lease(),
  )
  assert.equal(lease()?.spec?.holderIdentity, 'second')
  assert.equal(await second.leads(), 1)
})

test('a Lease in other hands ends the run, and nothing is written any more', async (t) => {
  const { cluster, store } = place(t)
  for (const definition of definitions()) store.apply(definition, 'test')
  const one = replica(t, cluster, 'one')
  const ref = {
    apiVersion: LEASE.apiVersion,
    kind: LEASE.kind,
    namespace: 'system',
    name: 'postern-operator',
  }
  await until(
    () => one.lifecycle.phase() === 'working',
    () => one.health.ready(),
  )
  store.apply({ ...store.get(ref)!, spec: { holderIdentity: 'thief', leaseTransitions: 7 } }, 'test')
  await assert.rejects(one.done, { code: 'LeadershipLost' })
  await assert.rejects(one.controller.options.cluster.remove(ref), { code: 'Unavailable' })
  assert.equal(await one.leads(), 0)
})

test('without election it works at once, and leaves no Lease', async (t) => {
  const { cluster, store } = place(t)
  for (const definition of definitions()) store.apply(definition, 'test')
  const one = replica(t, cluster, 'one', false)
  await until(
    () => one.lifecycle.phase() === 'working',
    () => one.health.ready(),
  )
  one.controller.ended.resolve()
  one.stop.abort()
  await one.done
  assert.deepEqual(one.controller.said, ['start', 'close', 'closed'])
  assert.deepEqual(store.list(LEASE), [])
})
