import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Resource } from '../../core/resource.ts'
import type { WatchEvent } from './api.ts'
import { DOOR } from './api-fixture.ts'
import { ReflectedCache } from './reflected-cache.ts'
import { isNewer, isVersion } from './resource-version.ts'

function door(name: string, version: number, metadata: object = {}, rest: object = {}): Resource {
  return {
    apiVersion: DOOR.apiVersion,
    kind: DOOR.kind,
    metadata: { namespace: 'one', name, resourceVersion: String(version), ...metadata },
    ...rest,
  }
}

type Change = 'ADDED' | 'MODIFIED' | 'DELETED'
const event = (type: Change, name: string, version: number): WatchEvent<Resource> => ({
  type,
  object: door(name, version),
})

/** A cache with `a` in version 9 and `b` in version 10, listed at version 20. */
function make(namespace?: string) {
  const cache = new ReflectedCache<Resource>(DOOR)
  const source = cache.source(namespace)
  const list = source.relist()
  list.add([door('a', 9), door('b', 10)])
  list.commit('20')
  return { cache, source, version: (name: string) => cache.get(`one/${name}`)?.metadata.resourceVersion }
}

test('versions compare as the numbers that they are', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 1n << 100n }), fc.bigInt({ min: 0n, max: 1n << 100n }), (a, b) => {
      assert.ok(isVersion(String(a)))
      assert.equal(isNewer(String(a), String(b)), a > b)
    }),
  )
  assert.ok(isNewer('0', undefined))
  for (const wrong of ['', '01', '-1', '1.5', '0x1', 'abc', '1 ', '9'.repeat(40), 7, undefined, null]) {
    assert.ok(!isVersion(wrong), String(wrong))
  }
})

test('an event counts when it is newer than what is held, or than what was seen', () => {
  const table: [WatchEvent<Resource>, string, string | undefined][] = [
    [event('MODIFIED', 'b', 21), 'b', '21'],
    [event('MODIFIED', 'b', 10), 'b', '10'],
    [event('MODIFIED', 'b', 9), 'b', '10'],
    [event('DELETED', 'b', 21), 'b', undefined],
    [event('DELETED', 'b', 10), 'b', '10'],
    [event('DELETED', 'b', 9), 'b', '10'],
    [event('ADDED', 'c', 21), 'c', '21'],
    [event('ADDED', 'c', 20), 'c', undefined],
    [event('DELETED', 'c', 21), 'c', undefined],
  ]
  for (const [change, name, expected] of table) {
    const { source, version } = make()
    assert.ok(source.event(change) !== undefined)
    assert.equal(version(name), expected, JSON.stringify(change))
  }
})

test('an own write counts when it is newer than what is held, or than what was seen', () => {
  const { cache, source, version } = make()
  cache.take(door('b', 9))
  assert.equal(version('b'), '10')
  cache.take(door('b', 30))
  cache.take(door('c', 20))
  cache.take(door('d', 31))
  assert.deepEqual(['b', 'c', 'd'].map(version), ['30', undefined, '31'])
  // The watch is behind: it tells of a deletion before the own write, which made the object anew.
  source.event(event('DELETED', 'b', 25))
  assert.equal(version('b'), '30')
  source.event(event('ADDED', 'b', 30))
  source.event(event('DELETED', 'd', 32))
  cache.take(door('d', 31))
  assert.deepEqual(['b', 'd'].map(version), ['30', undefined])
})

test('bookmarks move on what was seen; what makes no sense is refused', () => {
  const { cache, source, version } = make()
  assert.equal(source.event({ type: 'BOOKMARK', resourceVersion: '50' }), '50')
  assert.equal(source.event({ type: 'BOOKMARK', resourceVersion: '40' }), '50')
  cache.take(door('c', 50))
  assert.equal(version('c'), undefined)
  const nonsense: unknown[] = [
    { type: 'BOOKMARK' },
    { type: 'ADDED' },
    { type: 'ADDED', object: null },
    { type: 'ADDED', object: { apiVersion: 'v1', kind: 'Door' } },
    { type: 'ADDED', object: { metadata: { name: 'c' } } },
    { type: 'ADDED', object: { metadata: { name: 7, resourceVersion: '60' } } },
    { type: 'ADDED', object: { metadata: { name: 'c', resourceVersion: 'x' } } },
    { type: 'OTHER', object: door('c', 60) },
  ]
  for (const one of nonsense) {
    assert.equal(source.event(one as WatchEvent<Resource>), undefined, JSON.stringify(one))
  }
  cache.take({ kind: 'Door' } as Resource)
  assert.equal(cache.list().length, 2)
})

test('a list replaces what is no newer than it; nothing is seen of one that is not committed', () => {
  const { cache, source, version } = make()
  source.relist().add([door('x', 25)])
  const told: string[] = []
  cache.subscribe(({ key, before, after }) => {
    told.push(`${key} ${before?.metadata.resourceVersion ?? '-'} ${after?.metadata.resourceVersion ?? '-'}`)
  })
  told.length = 0
  const held = cache.get('one/b')
  const list = source.relist()
  assert.equal(list.add([door('b', 10), { metadata: {} } as Resource]), 1)
  cache.take(door('late', 35))
  cache.take(door('early', 29))
  list.add([door('c', 25)])
  list.commit('30')
  assert.deepEqual(['a', 'b', 'c', 'early', 'late'].map(version), [undefined, '10', '25', undefined, '35'])
  assert.equal(cache.get('one/b'), held)
  assert.deepEqual(told, ['one/late - 35', 'one/early - 29', 'one/c - 25', 'one/a 9 -', 'one/early 29 -'])
})

test('a list that is older than what was seen is another world, and counts as it is', () => {
  const { source, version } = make()
  source.event(event('ADDED', 'c', 25))
  const list = source.relist()
  list.add([door('b', 8)])
  list.commit('15')
  assert.deepEqual(['a', 'b', 'c'].map(version), [undefined, '8', undefined])
  source.event(event('ADDED', 'c', 16))
  assert.equal(version('c'), '16')
})

test('a list of one namespace leaves others alone; ready once all were listed', async () => {
  const cache = new ReflectedCache<Resource>(DOOR)
  const one = cache.source('one')
  const two = cache.source('two')
  assert.throws(() => cache.source('two'), /two reflectors bring doors of two to one cache/)
  assert.throws(() => cache.source(), /two reflectors bring doors of one/)
  let ready = false
  void cache.ready.then(() => {
    ready = true
  })
  const list = two.relist()
  list.add([door('a', 5, { namespace: 'two' })])
  list.commit('10')
  cache.take(door('mine', 7))
  cache.take(door('other', 7, { namespace: 'three' }))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(ready, false)
  one.relist().commit('12')
  await cache.ready
  assert.deepEqual(
    cache.list().map(({ metadata }) => metadata.namespace),
    ['two'],
  )
})

test('what nobody reads is not kept, and its member stays', () => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}', mine: 'x' }
  const more = { managedFields: [{ manager: 'x' }], annotations }
  const cache = new ReflectedCache<Resource>(DOOR, {
    transform: (object) => {
      object.spec = (object.spec as { all: unknown }).all
      return object
    },
  })
  const source = cache.source()
  const list = source.relist()
  list.add([door('a', 1, structuredClone(more), { spec: { all: 1 } })])
  list.commit('1')
  source.event({ type: 'ADDED', object: door('b', 2, structuredClone(more), { spec: { all: 2 } }) })
  cache.take(door('c', 3, structuredClone(more), { spec: { all: 3 } }))
  for (const [index, name] of ['a', 'b', 'c'].entries()) {
    const { metadata, spec } = cache.get(`one/${name}`)!
    assert.ok(Object.hasOwn(metadata, 'managedFields'))
    assert.deepEqual(JSON.parse(JSON.stringify(metadata)), {
      namespace: 'one',
      name,
      resourceVersion: String(index + 1),
      annotations: { mine: 'x' },
    })
    assert.equal(spec, index + 1)
  }
})

test('a transform that throws costs memory, not the object; metadata alone is kept where that is asked for', async () => {
  const warned = new Promise((resolve) => process.once('warning', resolve))
  const cache = new ReflectedCache<Resource>(DOOR, {
    transform: () => {
      throw new Error('the transform is broken')
    },
  })
  cache.source().event({ type: 'ADDED', object: door('a', 1, {}, { spec: 1 }) })
  assert.equal(cache.get('one/a')?.spec, 1)
  assert.match(String(await warned), /the transform is broken/)
  const metadata = new ReflectedCache<Resource>(DOOR, { metadataOnly: true })
  metadata.source()
  metadata.take(door('a', 1, {}, { spec: 1, data: { secret: 'x' } }))
  assert.deepEqual(Object.keys(metadata.get('one/a')!), ['apiVersion', 'kind', 'metadata'])
})
