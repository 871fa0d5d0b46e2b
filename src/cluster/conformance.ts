import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Condition } from '../core/conditions.ts'
import { type Kind, keyFor, ownerReference, type Ref, type Resource } from '../core/resource.ts'
import type { CacheChange, Cluster } from './cluster.ts'
import { ClusterError } from './errors.ts'
import { EVENT } from './kinds.ts'

export interface Subject {
  cluster: Cluster
  /** Namespaced, with a status subresource, whose spec and status take any field. */
  kind: Kind
  /** Empty of objects of the kind. */
  namespace: string
  close(): Promise<void>
}

/** What every Cluster does, whatever it runs on. */
export function conformance(name: string, make: () => Promise<Subject>): void {
  describe(`${name} is a cluster`, () => {
    let subject: Subject
    let cluster: Cluster
    let kind: Kind
    beforeEach(async () => {
      subject = await make()
      cluster = subject.cluster
      kind = subject.kind
    })
    afterEach(() => subject.close())

    const object = (objectName: string, rest: object = {}, metadata: object = {}): Resource => ({
      apiVersion: kind.apiVersion,
      kind: kind.kind,
      metadata: { namespace: subject.namespace, name: objectName, ...metadata },
      ...rest,
    })
    const ref = (objectName: string): Ref => ({
      apiVersion: kind.apiVersion,
      kind: kind.kind,
      namespace: subject.namespace,
      name: objectName,
    })
    const get = (objectName: string) => cluster.get(kind, ref(objectName))
    const must = async (objectName: string): Promise<Resource> => {
      const found = await get(objectName)
      assert.ok(found, `${objectName} is not there`)
      return found
    }
    const fails = (work: Promise<unknown>, code: string) =>
      assert.rejects(work, (error) => {
        assert.ok(error instanceof ClusterError, String(error))
        assert.equal(error.code, code, error.message)
        return true
      })

    test('a first apply creates, the same again changes nothing', async () => {
      assert.equal(await cluster.apply(object('a', { spec: { size: 1 } }), 'one'), 'created')
      const first = await must('a')
      assert.match(first.metadata.uid ?? '', /^[0-9a-f-]{36}$/)
      assert.match(first.metadata.creationTimestamp ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
      assert.equal(first.metadata.generation, 1)
      assert.equal(await cluster.apply(object('a', { spec: { size: 1 } }), 'one'), 'unchanged')
      assert.deepEqual(await must('a'), first)
      assert.equal(await cluster.apply(object('a', { spec: { size: 2 } }), 'one'), 'changed')
      const second = await must('a')
      assert.equal(second.metadata.generation, 2)
      assert.notEqual(second.metadata.resourceVersion, first.metadata.resourceVersion)
      assert.equal(second.metadata.uid, first.metadata.uid)
    })

    test('a manager removes what it no longer sets, and only that', async () => {
      await cluster.apply(object('a', { spec: { mine: { x: 1, y: 2 }, list: [1, 2] } }), 'one')
      await cluster.apply(object('a', { spec: { theirs: true } }), 'two')
      assert.equal(await cluster.apply(object('a', { spec: { mine: { x: 1 } } }), 'one'), 'changed')
      assert.deepEqual((await must('a')).spec, { mine: { x: 1 }, theirs: true })
    })

    test('what two managers set alike stays until both let go', async () => {
      await cluster.apply(object('a', { spec: { shared: 1, base: 1 } }), 'one')
      await cluster.apply(object('a', { spec: { shared: 1 } }), 'two')
      await cluster.apply(object('a', { spec: { base: 1 } }), 'one')
      assert.deepEqual((await must('a')).spec, { shared: 1, base: 1 })
      await cluster.apply(object('a', { spec: { other: 1 } }), 'two')
      assert.deepEqual((await must('a')).spec, { other: 1, base: 1 })
    })

    test('a taken field is the taker’s: its former owner no longer removes it', async () => {
      await cluster.apply(object('a', { spec: { size: 1, base: 1 } }), 'one')
      await cluster.apply(object('a', { spec: { size: 2 } }), 'two')
      await cluster.apply(object('a', { spec: { base: 1 } }), 'one')
      assert.deepEqual((await must('a')).spec, { size: 2, base: 1 })
    })

    test('lists are replaced as a whole', async () => {
      await cluster.apply(
        object('a', {
          spec: {
            ports: [
              { name: 'a', port: 1 },
              { name: 'b', port: 2 },
            ],
          },
        }),
        'one',
      )
      await cluster.apply(object('a', { spec: { ports: [{ name: 'a', port: 3 }] } }), 'two')
      assert.deepEqual((await must('a')).spec, { ports: [{ name: 'a', port: 3 }] })
    })

    test('labels and annotations are owned one by one, and are no new generation', async () => {
      await cluster.apply(
        object('a', {}, { labels: { one: '1', old: '1' }, annotations: { 'a.b/c': 'x' } }),
        'one',
      )
      await cluster.apply(object('a', {}, { labels: { two: '2' } }), 'two')
      await cluster.apply(object('a', {}, { labels: { one: '1' } }), 'one')
      const { metadata } = await must('a')
      assert.deepEqual(metadata.labels, { one: '1', two: '2' })
      assert.equal(metadata.annotations, undefined)
      assert.equal(metadata.generation, 1)
    })

    test('unknown fields survive', async () => {
      await cluster.apply(
        object('a', { spec: { future: { deep: [null, { x: 'é' }] }, no: false, zero: 0 } }),
        'one',
      )
      assert.deepEqual((await must('a')).spec, { future: { deep: [null, { x: 'é' }] }, no: false, zero: 0 })
    })

    test('create never overwrites, and what it wrote outlives an apply that does not name it', async () => {
      const created = await cluster.create(object('a', { spec: { key: 'precious' } }), 'one')
      assert.equal(created.metadata.generation, 1)
      await fails(cluster.create(object('a', { spec: { key: 'other' } }), 'one'), 'AlreadyExists')
      await cluster.apply(object('a', {}, { labels: { x: 'y' } }), 'one')
      await cluster.apply(object('a', {}, {}), 'one')
      assert.deepEqual((await must('a')).spec, { key: 'precious' })
    })

    test('status and the rest never touch each other', async () => {
      await fails(cluster.applyStatus({ ref: ref('a'), status: { x: 1 } }, 'one'), 'NotFound')
      await cluster.apply(object('a', { spec: { size: 1 }, status: { forged: true } }), 'one')
      assert.equal((await must('a')).status, undefined)
      assert.equal(await cluster.applyStatus({ ref: ref('a'), status: { ready: 1 } }, 'one'), 'changed')
      assert.equal(await cluster.applyStatus({ ref: ref('a'), status: { ready: 1 } }, 'one'), 'unchanged')
      await cluster.apply(object('a', { spec: { size: 2 }, status: { forged: true } }), 'one')
      const found = await must('a')
      assert.deepEqual(found.status, { ready: 1 })
      assert.deepEqual(found.spec, { size: 2 })
      assert.equal(found.metadata.generation, 2)
      await cluster.applyStatus({ ref: ref('a'), status: { other: 1 } }, 'one')
      assert.deepEqual((await must('a')).status, { other: 1 })
    })

    test('conditions merge by type', async () => {
      const condition = (type: string, status: Condition['status']): Condition => ({
        type,
        status,
        reason: 'Because',
        message: 'm',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      })
      const set = (manager: string, ...conditions: Condition[]) =>
        cluster.applyStatus({ ref: ref('a'), status: { conditions } }, manager)
      const types = async () =>
        ((await must('a')).status as { conditions: Condition[] }).conditions.map(
          (c) => `${c.type}=${c.status}`,
        )
      await cluster.apply(object('a', { spec: {} }), 'one')
      await set('one', condition('Ready', 'False'), condition('Old', 'True'))
      await set('two', condition('Grant', 'True'))
      assert.deepEqual((await types()).sort(), ['Grant=True', 'Old=True', 'Ready=False'])
      await set('one', condition('Ready', 'True'))
      assert.deepEqual((await types()).sort(), ['Grant=True', 'Ready=True'])
    })

    test('remove: nothing there is fine, a wrong precondition is not', async () => {
      await cluster.remove(ref('a'))
      await cluster.apply(object('a', { spec: {} }), 'one')
      const { uid, resourceVersion } = (await must('a')).metadata
      await fails(cluster.remove(ref('a'), { uid: '00000000-0000-4000-8000-000000000000' }), 'Conflict')
      await cluster.apply(object('a', { spec: { x: 1 } }), 'one')
      await fails(cluster.remove(ref('a'), { uid: uid!, resourceVersion: resourceVersion! }), 'Conflict')
      await cluster.remove(ref('a'), { uid: uid! })
      assert.equal(await get('a'), undefined)
    })

    test('an apply for an object that was recreated is refused', async () => {
      await cluster.apply(object('a', { spec: {} }), 'one')
      const old = (await must('a')).metadata.uid!
      await cluster.remove(ref('a'))
      await cluster.apply(object('a', { spec: {} }), 'one')
      assert.notEqual((await must('a')).metadata.uid, old)
      await fails(cluster.apply(object('a', { spec: { x: 1 } }, { uid: old }), 'one'), 'Conflict')
    })

    test('an apply that names a version is refused once somebody else wrote', async () => {
      await cluster.apply(object('a', { spec: { x: 1 } }), 'one')
      const resourceVersion = (await must('a')).metadata.resourceVersion!
      await cluster.apply(object('a', { spec: { y: 1 } }), 'two')
      await fails(cluster.apply(object('a', { spec: { x: 2 } }, { resourceVersion }), 'one'), 'Conflict')
      const newer = { resourceVersion: (await must('a')).metadata.resourceVersion! }
      assert.equal(await cluster.apply(object('a', { spec: { x: 2 } }, newer), 'one'), 'changed')
      assert.deepEqual((await must('a')).spec, { x: 2, y: 1 })
    })

    test('a finalizer holds an object until it is gone', async () => {
      const finalizers = ['postern.dev/test']
      await cluster.apply(object('a', { spec: { x: 1 } }, { finalizers }), 'one')
      await cluster.remove(ref('a'))
      const dying = await must('a')
      assert.ok(dying.metadata.deletionTimestamp)
      await cluster.remove(ref('a'))
      await cluster.applyStatus({ ref: ref('a'), status: { leaving: true } }, 'one')
      assert.equal((await must('a')).metadata.deletionTimestamp, dying.metadata.deletionTimestamp)
      await cluster.apply(object('a', { spec: { x: 1 } }), 'one')
      assert.equal(await get('a'), undefined)
    })

    test('what an owner owned goes with it, and what another still owns stays', async () => {
      await cluster.apply(object('owner', { spec: {} }), 'one')
      await cluster.apply(object('second', { spec: {} }), 'one')
      const owner = ownerReference(await must('owner'))
      const second = { ...ownerReference(await must('second')), controller: false }
      await cluster.apply(object('child', { spec: {} }, { ownerReferences: [owner] }), 'one')
      await cluster.apply(object('shared', { spec: {} }, { ownerReferences: [owner, second] }), 'one')
      const grandchild = ownerReference(await must('child'))
      await cluster.apply(object('grandchild', { spec: {} }, { ownerReferences: [grandchild] }), 'one')
      await cluster.remove(ref('owner'))
      await until(async () => (await get('child')) === undefined && (await get('grandchild')) === undefined)
      assert.ok(await get('shared'))
      await cluster.remove(ref('second'))
      await until(async () => (await get('shared')) === undefined)
    })

    test('a new owner of the same name does not keep the children of the old one', async () => {
      await cluster.apply(object('owner', { spec: {} }), 'one')
      const ownerReferences = [ownerReference(await must('owner'))]
      await cluster.apply(object('child', { spec: {} }, { ownerReferences }), 'one')
      await cluster.remove(ref('owner'))
      await cluster.apply(object('owner', { spec: {} }), 'one')
      await until(async () => (await get('child')) === undefined)
      assert.ok(await get('owner'))
      // A child that comes too late goes as well.
      await cluster.apply(object('late', { spec: {} }, { ownerReferences }), 'one')
      await until(async () => (await get('late')) === undefined)
    })

    test('a cache follows, is indexed, and tells what was before', async () => {
      await cluster.apply(object('a', { spec: { group: 'x' } }), 'one')
      const cache = cluster.cache(kind)
      await cache.ready
      cache.index('group', (item) => [String((item.spec as { group?: string }).group)])
      const changes: CacheChange<Resource>[] = []
      const stop = cache.subscribe((change) => changes.push(change))
      const key = keyFor(subject.namespace, 'a')
      const mine = () => changes.filter((change) => change.key === key)
      await until(() => mine().length === 1)
      assert.equal(mine()[0]?.before, undefined)
      await cluster.apply(object('a', { spec: { group: 'y' } }), 'one')
      await until(() => mine().length === 2)
      assert.deepEqual(mine()[1]?.before?.spec, { group: 'x' })
      assert.deepEqual(cache.get(key)?.spec, { group: 'y' })
      assert.deepEqual(cache.by('group', 'x'), [])
      assert.deepEqual(
        cache.by('group', 'y').map((item) => item.metadata.name),
        ['a'],
      )
      assert.deepEqual(cache.list(`${subject.namespace}-other`), [])
      await cluster.remove(ref('a'))
      await until(() => mine().length === 3)
      assert.equal(mine()[2]?.after, undefined)
      assert.equal(cache.get(key), undefined)
      assert.deepEqual(cache.list(subject.namespace), [])
      assert.deepEqual(cache.by('group', 'y'), [])
      stop()
      await cluster.apply(object('a', { spec: { group: 'z' } }), 'one')
      await until(() => cache.get(key) !== undefined)
      assert.equal(mine().length, 3)
      assert.equal(cluster.cache(kind), cache)
    })

    test('what is not its owner’s is never taken over', async () => {
      await cluster.apply(object('owner', { spec: {} }), 'one')
      const ownerReferences = [ownerReference(await must('owner'))]
      await cluster.apply(object('theirs', { spec: { x: 1 } }), 'user')
      const mine = object('theirs', { spec: { x: 2 } }, { ownerReferences })
      await fails(cluster.apply(mine, 'one'), 'Taken')
      await fails(cluster.apply(mine, 'one'), 'Taken')
      assert.deepEqual((await must('theirs')).spec, { x: 1 })
      await cluster.remove(ref('theirs'))
      assert.equal(await cluster.apply(mine, 'one'), 'created')
      assert.equal(await cluster.apply(mine, 'one'), 'unchanged')
    })

    test('what somebody changed of an owned object is set right again', async () => {
      await cluster.apply(object('owner', { spec: {} }), 'one')
      const ownerReferences = [ownerReference(await must('owner'))]
      const mine = object('child', { spec: { x: 1 } }, { ownerReferences })
      await cluster.apply(mine, 'one')
      const cache = cluster.cache(kind)
      await cache.ready
      await cluster.apply(object('child', { spec: { x: 2 } }), 'meddler')
      await until(() => (cache.get(keyFor(subject.namespace, 'child'))?.spec as { x?: number })?.x === 2)
      assert.equal(await cluster.apply(mine, 'one'), 'changed')
      assert.deepEqual((await must('child')).spec, { x: 1 })
    })

    test('a cache of a scope holds what is labelled so, and lets go of what is not any more', async () => {
      const cache = cluster.cache(kind, { labels: { made: 'here' } })
      await cache.ready
      await cluster.apply(object('a', { spec: {} }, { labels: { made: 'here', more: 'x' } }), 'one')
      await cluster.apply(object('b', { spec: {} }, { labels: { made: 'there' } }), 'one')
      const names = () => cache.list(subject.namespace).map(({ metadata }) => metadata.name)
      await until(() => names().length === 1)
      assert.deepEqual(names(), ['a'])
      await cluster.apply(object('a', { spec: {} }, { labels: { more: 'x' } }), 'one')
      await until(() => names().length === 0)
      await cluster.apply(object('b', { spec: {} }, { labels: { made: 'here' } }), 'one')
      await until(() => names()[0] === 'b')
      assert.equal(cluster.cache(kind, { labels: { made: 'here' } }), cache)
    })

    test('an object is followed by its name, and no other', async () => {
      const named = cluster.named(kind)
      const key = keyFor(subject.namespace, 'a')
      const heard: string[] = []
      const stop = named.subscribe((changed) => heard.push(changed))
      assert.equal(named.get(key), undefined)
      named.want(key)
      await until(() => named.get(key) !== undefined)
      assert.equal(named.get(key)?.object, undefined)
      await cluster.apply(object('a', { spec: { x: 1 } }), 'one')
      await cluster.apply(object('b', { spec: {} }), 'one')
      await until(() => named.get(key)?.object !== undefined)
      await cluster.remove(ref('a'))
      await until(() => named.get(key)?.object === undefined)
      assert.deepEqual([...new Set(heard)], [key])
      named.drop(key)
      assert.equal(named.get(key), undefined)
      stop()
    })

    test('events: the same again is a count', async () => {
      await cluster.apply(object('a', { spec: {} }), 'one')
      const about = { ...ref('a'), uid: (await must('a')).metadata.uid! }
      const events = cluster.cache(EVENT)
      await events.ready
      const mine = () =>
        events
          .list(subject.namespace)
          .filter((event) => (event.regarding as { uid?: string } | undefined)?.uid === about.uid)
      for (const message of ['first', 'second', 'second']) {
        cluster.note({ about, type: 'Warning', reason: 'BackendMissing', message })
      }
      await until(() => mine().some((event) => event.series !== undefined) && mine().length === 2)
      const again = mine().find((event) => event.note === 'second')
      assert.equal((again?.series as { count?: number } | undefined)?.count, 2)
      assert.equal(again?.type, 'Warning')
      assert.equal(again?.reason, 'BackendMissing')
    })
  })
}

/** Waits for a state, with a limit that is only there for the broken case. */
async function until(state: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 20_000
  while (!(await state())) {
    assert.ok(performance.now() < end, `still not: ${state}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
