import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Kind, Resource } from '../../core/resource.ts'
import { EVENT, NAMESPACE, SECRET } from '../kinds.ts'
import { EmbeddedCluster } from './cluster.ts'
import { Store } from './store.ts'

const DOOR: Kind = { apiVersion: 'test.postern.dev/v1', kind: 'Door', plural: 'doors', namespaced: true }

function make(options: { now?: () => number } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'postern-cluster-'))
  const store = new Store(folder)
  const cluster = new EmbeddedCluster(store, [DOOR, SECRET, NAMESPACE], options)
  return {
    store,
    cluster,
    [Symbol.dispose]() {
      cluster.close()
      store.close()
      rmSync(folder, { recursive: true })
    },
  }
}

const door = (name: string, rest: object = {}): Resource => ({
  apiVersion: DOOR.apiVersion,
  kind: DOOR.kind,
  metadata: { namespace: 'default', name },
  ...rest,
})

test('caches are as of the commit, without waiting', async () => {
  using made = make()
  const cache = made.cluster.cache(DOOR)
  made.store.apply(door('a', { spec: { x: 1 } }), 'one')
  assert.deepEqual(cache.get('default/a')?.spec, { x: 1 })
})

test('nobody corrupts the store through what a cache hands out, or through what was applied', async () => {
  using made = make()
  const mine = door('a', { spec: { list: [1] } })
  await made.cluster.apply(mine, 'one')
  ;(mine.spec as { list: number[] }).list.push(2)
  const cached = made.cluster.cache(DOOR).get('default/a')!
  assert.throws(() => (cached.spec as { list: number[] }).list.push(2), TypeError)
  assert.throws(() => {
    cached.metadata.name = 'b'
  }, TypeError)
  assert.deepEqual((await made.cluster.get(DOOR, { namespace: 'default', name: 'a' }))?.spec, { list: [1] })
})

test('a listener or an index that throws harms nobody', async () => {
  using made = make()
  const cache = made.cluster.cache(DOOR)
  cache.index('broken', (object) => [(object.spec as { must: { be: string } }).must.be])
  const warnings: Error[] = []
  const hear = (warning: Error) => warnings.push(warning)
  process.on('warning', hear)
  cache.subscribe(() => {
    throw new Error('listener is broken')
  })
  const seen: string[] = []
  cache.subscribe(({ key }) => seen.push(key))
  assert.equal(await made.cluster.apply(door('a'), 'one'), 'created')
  assert.equal(await made.cluster.apply(door('b', { spec: { must: { be: 'x' } } }), 'one'), 'created')
  assert.deepEqual(seen, ['default/a', 'default/b'])
  assert.equal(cache.by('broken', 'x').length, 1)
  assert.throws(() => cache.by('never declared', 'x'), /has no index never declared/)
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', hear)
  assert.equal(warnings[0]?.message, 'listener is broken')
})

test('what a listener changes is told after what it heard', async () => {
  using made = make()
  const seen: string[] = []
  const cache = made.cluster.cache(DOOR)
  cache.subscribe(({ key }) => {
    if (key === 'default/a') made.store.apply(door('b'), 'one')
  })
  cache.subscribe(({ key }) => seen.push(key))
  made.store.apply(door('a'), 'one')
  assert.deepEqual(seen, ['default/a', 'default/b'])
})

test('unknown kinds and wrong scopes are refused with the way out', async () => {
  using made = make()
  const { cluster } = made
  await assert.rejects(cluster.apply({ ...door('a'), kind: 'Dor' }, 'one'), {
    code: 'NotFound',
    message: 'there is no kind test.postern.dev/v1 Dor: did you mean test.postern.dev/v1 Door?',
  })
  await assert.rejects(cluster.apply({ ...door('a'), metadata: { name: 'a' } }, 'one'), {
    code: 'Invalid',
    message: 'Door a needs a metadata.namespace',
  })
  const space = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'x', namespace: 'y' } }
  await assert.rejects(cluster.create(space, 'one'), {
    code: 'Invalid',
    message: 'Namespace x has no namespace: leave metadata.namespace out',
  })
  assert.throws(() => cluster.cache({ ...DOOR, kind: 'Wall' }), { code: 'NotFound' })
})

test('events: at most 25 a minute about one object, and 1,000 in all', async () => {
  let now = Date.parse('2026-01-01T00:00:00Z')
  using made = make({ now: () => now })
  const events = made.cluster.cache(EVENT)
  const flushed = () => new Promise((resolve) => setImmediate(resolve))
  const note = (name: string, message: string) =>
    made.cluster.note({
      about: { apiVersion: DOOR.apiVersion, kind: DOOR.kind, namespace: 'default', name },
      type: 'Normal',
      reason: 'Tested',
      message,
    })
  for (let index = 0; index < 40; index++) note('a', `message ${index}`)
  await flushed()
  assert.equal(events.list('default').length, 25)
  now += 60_000
  note('a', 'one more')
  await flushed()
  assert.equal(events.list('default').length, 26)
  for (let index = 0; index < 999; index++) note(`b${index}`, 'hello')
  await flushed()
  assert.equal(events.list().length, 1000)
  // Those that go are the oldest.
  assert.equal(events.list().filter((event) => event.note === 'message 0').length, 0)
  assert.equal(events.list().filter((event) => event.note === 'one more').length, 1)
})

test('an event’s count goes on after a restart', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-cluster-'))
  for (let run = 1; run <= 2; run++) {
    const store = new Store(folder)
    const cluster = new EmbeddedCluster(store, [DOOR])
    const about = { apiVersion: DOOR.apiVersion, kind: DOOR.kind, namespace: 'default', name: 'a' }
    cluster.note({ about, type: 'Normal', reason: 'Tested', message: 'é'.repeat(2000) })
    cluster.close()
    const [event, ...others] = store.list(EVENT)
    assert.equal(others.length, 0)
    assert.equal((event?.series as { count?: number } | undefined)?.count, run === 1 ? undefined : 2)
    assert.ok(Buffer.byteLength(event?.note as string) <= 1024)
    store.close()
  }
  rmSync(folder, { recursive: true })
})
