import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource } from '../../core/resource.ts'
import type { Change } from './journal.ts'
import { collect, DOOR, door, make, ref, until, WALL } from './store-fixture.ts'

test('without force, apply names who owns what it would change, and changes nothing', () => {
  using made = make()
  const { store } = made
  store.apply(door('a', { spec: { size: 1, ports: [1] } }, { annotations: { 'a.b/c': 'x' } }), 'one')
  const before = store.revision
  const mine = door('a', { spec: { size: 2, ports: [2] } }, { annotations: { 'a.b/c': 'y' } })
  assert.throws(() => store.apply(mine, 'two', { force: false }), {
    code: 'Conflict',
    message:
      'Door default/a: two may not change it: one owns metadata.annotations["a.b/c"], one owns spec.ports, one owns spec.size',
  })
  assert.equal(store.revision, before)
  const same = door('a', { spec: { size: 1 } })
  assert.equal(store.apply(same, 'two', { force: false }).result, 'unchanged')
  assert.deepEqual(store.managers(ref('a')), ['one', 'two'])
  // What two own is neither's to change alone.
  const again = door('a', { spec: { size: 3, ports: [1] } }, { annotations: { 'a.b/c': 'x' } })
  assert.throws(() => store.apply(again, 'one', { force: false }), /two owns spec.size/)
})

test('a status has its own owners, and conflicts there too', () => {
  using made = make()
  const { store } = made
  store.apply(door('a', { spec: { x: 1 } }), 'one')
  store.applyStatus(
    { ref: ref('a'), status: { a: 1, conditions: [{ type: 'Ready', status: 'True' }] } },
    'one',
  )
  store.update({ ...store.get(ref('a'))!, spec: { x: 2 } }, 'user')
  const theirs = { ref: ref('a'), status: { conditions: [{ type: 'Ready', status: 'False' }] } }
  assert.throws(() => store.applyStatus(theirs, 'two', { force: false }), {
    code: 'Conflict',
    message: 'Door default/a: two may not change it: one owns status.conditions[Ready].status',
  })
  store.applyStatus({ ref: ref('a'), status: {} }, 'one')
  assert.deepEqual(store.get(ref('a'))?.status, {})
  assert.deepEqual(store.get(ref('a'))?.spec, { x: 2 })
})

test('a scalar may become an object and back', () => {
  using made = make()
  const { store } = made
  for (const x of [1, { deep: { er: 1 } }, [1], {}, { deep: 1 }, null, 'text']) {
    store.apply(door('a', { spec: { x } }), 'one')
    assert.deepEqual(store.get(ref('a'))?.spec, { x })
    store.apply(door('a', { spec: { x } }), 'two')
  }
})

test('update replaces, and takes what it changed from its owners', () => {
  using made = make()
  const { store } = made
  store.apply(door('a', { spec: { size: 1, gone: 1, kept: 1 } }, { labels: { x: 'y' } }), 'one')
  const read = store.get(ref('a'))!
  const updated = store.update({ ...read, spec: { size: 2, kept: 1 } }, 'user')
  assert.equal(updated.metadata.generation, 2)
  assert.throws(() => store.update({ ...read, spec: { size: 3 } }, 'user'), { code: 'Conflict' })
  assert.throws(() => store.update(door('b'), 'user'), { code: 'NotFound' })
  // size is the updater's now: its former owner no longer removes it.
  store.apply(door('a', {}, { labels: { x: 'y' } }), 'one')
  assert.deepEqual(store.get(ref('a'))?.spec, { size: 2 })
  store.update(door('a', { spec: { forced: true } }), 'user')
  assert.deepEqual(store.get(ref('a'))?.metadata.labels, undefined)
})

test('owner references and finalizers of several managers add up', () => {
  using made = make()
  const { store } = made
  const owners = ['p', 'q'].map((name) => store.create(door(name), 'one').metadata.uid!)
  const reference = (index: number) => ({
    apiVersion: DOOR.apiVersion,
    kind: 'Door',
    name: 'pq'[index]!,
    uid: owners[index]!,
  })
  store.apply(door('a', {}, { ownerReferences: [reference(0)], finalizers: ['x/one'] }), 'one')
  store.apply(door('a', {}, { ownerReferences: [reference(1)], finalizers: ['x/two'] }), 'two')
  const both = store.get(ref('a'))!.metadata
  assert.deepEqual(both.finalizers, ['x/one', 'x/two'])
  assert.deepEqual(both.ownerReferences, [reference(0), reference(1)])
  store.apply(door('a', {}), 'one')
  const left = store.get(ref('a'))!.metadata
  assert.deepEqual(left.finalizers, ['x/two'])
  assert.deepEqual(left.ownerReferences, [reference(1)])
  assert.equal(left.generation, 1)
  store.remove(ref('q'))
  // Its owner is gone, its finalizer is not.
  assert.ok(store.get(ref('a'))?.metadata.deletionTimestamp)
  assert.throws(() => store.apply(door('a', {}, { finalizers: ['x/three'] }), 'three'), {
    code: 'Invalid',
    message: 'Door default/a is being deleted: the finalizer x/three cannot be added any more',
  })
  store.apply(door('a', {}), 'two')
  assert.equal(store.get(ref('a')), undefined)
})

test('what could hurt is refused, with the way out', () => {
  using made = make()
  const { store } = made
  const refused = (object: unknown, message: RegExp) =>
    assert.throws(() => store.apply(object as Resource, 'one'), { code: 'Invalid', message })
  refused(door('a', { spec: 'x'.repeat(1_600_000) }), /^Door default\/a is bigger than 1.5 MB: /)
  refused(door('a', { spec: '\u20ac'.repeat(600_000) }), /^Door default\/a is bigger than 1.5 MB: /)
  let deep: unknown = 1
  for (let index = 0; index < 100; index++) deep = { deep }
  refused(door('a', { spec: deep }), /nested deeper than 64/)
  const circle: Record<string, unknown> = {}
  circle.circle = circle
  refused(door('a', { spec: circle }), /nested deeper than 64/)
  refused(door('a', { spec: JSON.parse('{"__proto__": {"x": 1}}') }), /__proto__: remove it/)
  refused(door('A_b'), /"A_b" is no valid name: use at most 253 lower case/)
  refused(door('a', {}, { namespace: 'x.y' }), /"x.y" is no valid namespace/)
  refused({ kind: 'Door', metadata: { name: 'a' } }, /apiVersion is missing/)
  refused({ apiVersion: 'v1', kind: 'Door' }, /needs apiVersion, kind and metadata.name/)
  refused(
    door('a', {}, { ownerReferences: [{ kind: 'Door', name: 'x' }] }),
    /every item needs the uid of its owner/,
  )
  assert.equal(store.revision, 0)
})

test('watchers hear every commit in order, and may ask for what they missed', () => {
  using made = make()
  const { store } = made
  const first = collect(store)
  store.apply(door('a', { spec: { x: 1 } }), 'one')
  const second = collect(store)
  const since = store.revision
  store.apply(door('a', { spec: { x: 2 } }), 'one')
  store.apply({ ...door('w'), kind: 'Wall' }, 'one')
  store.remove(ref('a'))
  const told = (changes: Change[]) =>
    changes.map((change) => `${change.type} ${change.ref.name} ${change.revision}`)
  assert.deepEqual(told(first.changes), ['put a 1', 'put a 2', 'put w 3', 'removed a 4'])
  assert.deepEqual(told(second.changes), ['put a 2', 'put w 3', 'removed a 4'])
  assert.deepEqual(first.changes[1]?.object?.spec, { x: 2 })
  assert.equal(first.changes[1]?.object?.metadata.resourceVersion, '2')
  // The put in between is no longer to be had, and the removal says all.
  assert.deepEqual(told(store.changesSince(DOOR, since)), ['removed a 4'])
  assert.deepEqual(told(store.changesSince(undefined, since)), ['put w 3', 'removed a 4'])
  assert.deepEqual(store.changesSince(undefined, store.revision), [])
})

test('a batch is one transaction, in which a failure undoes only itself', () => {
  using made = make()
  const { store } = made
  const { changes } = collect(store)
  store.batch(() => {
    store.apply(door('a'), 'one')
    assert.throws(() => store.apply(door('a', { spec: 'x'.repeat(2_000_000) }), 'one'))
    assert.throws(() => store.create(door('a'), 'one'), { code: 'AlreadyExists' })
    store.apply(door('b'), 'one')
    assert.equal(changes.length, 0)
  })
  assert.deepEqual(
    changes.map((change) => change.ref.name),
    ['a', 'b'],
  )
  assert.throws(() =>
    store.batch(() => {
      store.apply(door('c'), 'one')
      throw new Error('no')
    }),
  )
  assert.equal(store.get(ref('c')), undefined)
  assert.equal(changes.length, 2)
})

test('who asks for what is forgotten is told so', () => {
  using made = make({ changes: 10 })
  const { store } = made
  for (let index = 0; index < 25; index++) store.apply(door('a', { spec: { index } }), 'one')
  assert.equal(store.changesSince(DOOR, 15).length, 1)
  assert.throws(() => store.changesSince(DOOR, 14), {
    name: 'ClusterError',
    code: 'Gone',
    message: 'changes up to revision 15 are forgotten: list again, then watch',
  })
})

test('a follower that is too slow is told so, a quick one hears all, a quiet kind is never too old', async () => {
  using made = make({ changes: 10 })
  const { store } = made
  const stop = new AbortController()
  const slow = store.follow(DOOR, store.revision, stop.signal)
  store.apply(door('a', { spec: { index: -1 } }), 'one')
  assert.equal((await slow.next()).value?.ref.name, 'a')
  for (let index = 0; index < 25; index++) store.apply(door('a', { spec: { index } }), 'one')
  await assert.rejects(slow.next(), { code: 'Gone' })

  const heard: number[] = []
  const quick = (async () => {
    for await (const change of store.follow(DOOR, store.revision, stop.signal)) heard.push(change.revision)
  })()
  const walls = store.follow(WALL, store.revision, stop.signal)
  const wall = walls.next()
  const from = store.revision
  for (let index = 100; index < 125; index++) {
    store.apply(door('a', { spec: { index } }), 'one')
    await until(() => heard.length === store.revision - from)
  }
  store.apply({ ...door('w'), kind: 'Wall' }, 'one')
  assert.equal((await wall).value?.ref.name, 'w')
  stop.abort()
  await quick
  assert.equal((await walls.next()).done, true)
})
