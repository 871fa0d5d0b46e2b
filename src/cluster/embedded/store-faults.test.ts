import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { Store } from './store.ts'
import { child, collect, DOOR, door, killed, make, ref, temporary, until } from './store-fixture.ts'

test('another process is heard, and who missed more than the journal keeps lists again', async () => {
  using made = make({ changes: 10, pollMs: 50 })
  const { store, folder } = made
  const { changes, resyncs } = collect(store)
  store.apply(door('mine'), 'one')
  const other = child(
    folder,
    `store.watch({ changed: (change) => say('heard ' + change.ref.name), resync() {} })
     store.apply(door('theirs', { spec: { x: 1 } }), 'two')
     say('ready')
     process.stdin.once('data', () => {
       store.batch(() => { for (let i = 0; i < 30; i++) store.apply(door('theirs', { spec: { i } }), 'two') })
       process.stdin.resume()
     })`,
  )
  try {
    await other.said('ready')
    await until(() => changes.some((change) => change.ref.name === 'theirs'))
    assert.deepEqual(changes.at(-1)?.object?.spec, { x: 1 })
    store.apply(door('for-them'), 'one')
    await other.said('heard for-them')
    // Its store keeps more than ours; what counts is how far back the journal reaches when we look.
    other.stdin?.write('go\n')
    await until(() => changes.some((change) => (change.object?.spec as { i?: number } | undefined)?.i === 29))
    assert.equal(resyncs(), 0)
  } finally {
    await killed(other)
  }
  // A second one that keeps as little as this: what it did is forgotten before anybody looks.
  const second = new Store(folder, { changes: 10 })
  const before = resyncs()
  second.batch(() => {
    for (let index = 0; index < 30; index++) second.apply(door('theirs', { spec: { again: index } }), 'two')
  })
  second.close()
  await until(() => resyncs() === before + 1)
})

test('two processes that write the same object lose nothing', async () => {
  using made = make()
  const { store, folder } = made
  store.apply(door('count', { spec: { n: 0 } }), 'one')
  const code = `
    for (let done = 0; done < 50; ) {
      const object = store.get({ apiVersion: '${DOOR.apiVersion}', kind: 'Door', namespace: 'default', name: 'count' })
      object.spec.n++
      try { store.update(object, 'two'); done++ } catch (error) { if (error.code !== 'Conflict') throw error }
    }
    store.close()
    say('done')`
  const children = [child(folder, code), child(folder, code)]
  try {
    await Promise.all(children.map((process_) => process_.said('done')))
  } finally {
    await Promise.all(children.map(killed))
  }
  assert.deepEqual(store.get(ref('count'))?.spec, { n: 100 })
})

test('kill -9 in the middle of a transaction tears nothing, and after a commit loses nothing', async () => {
  using made = temporary()
  const process_ = child(
    made.folder,
    `const owner = store.apply(door('owner'), 'one').object
     store.apply(door('kept', { spec: { x: 1 } }), 'one')
     store.batch(() => {
       for (let i = 0; i < 500; i++) store.apply(door('torn-' + i, { spec: 'x'.repeat(20000) }), 'one')
       store.apply(door('kept', { spec: { x: 2 } }), 'one')
       store.remove({ apiVersion: owner.apiVersion, kind: owner.kind, namespace: 'default', name: 'owner' })
       say('inside')
       for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)
     })`,
  )
  // A pipe's write from inside the transaction may be late: that the WAL grew is the sign then.
  await until(() => {
    try {
      return statSync(join(made.folder, 'objects.db-wal')).size > 1_000_000
    } catch {
      return false
    }
  })
  await killed(process_)
  const store = new Store(made.folder)
  assert.deepEqual(
    store.list(DOOR).map((object) => object.metadata.name),
    ['kept', 'owner'],
  )
  assert.deepEqual(store.get(ref('kept'))?.spec, { x: 1 })
  assert.equal(store.revision, 2)
  assert.equal(store.apply(door('kept', { spec: { x: 3 } }), 'one').object.metadata.resourceVersion, '3')
  const db = new DatabaseSync(join(made.folder, 'objects.db'))
  assert.deepEqual({ ...db.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' })
  db.close()
  store.close()
})

test('orphans that something left behind go when the store is opened', () => {
  using made = temporary()
  const store = new Store(made.folder)
  const { uid } = store.create(door('owner'), 'one').metadata
  const ownerReferences = [{ apiVersion: DOOR.apiVersion, kind: 'Door', name: 'owner', uid: uid! }]
  store.apply(door('child', {}, { ownerReferences }), 'one')
  store.apply(door('held', {}, { ownerReferences, finalizers: ['x/y'] }), 'one')
  store.close()
  const db = new DatabaseSync(join(made.folder, 'objects.db'))
  db.exec("DELETE FROM objects WHERE name = 'owner'")
  db.close()
  const again = new Store(made.folder)
  assert.equal(again.get(ref('child')), undefined)
  assert.ok(again.get(ref('held'))?.metadata.deletionTimestamp)
  again.close()
})

/** What happens on a full disk, whoever says that it is full. */
function fillUp(store: Store, folder: string, makeRoom: () => void): void {
  store.apply(door('kept', { spec: { x: 1 } }), 'one')
  const { changes } = collect(store)
  let written = 0
  let failure: unknown
  while (failure === undefined && written < 200) {
    try {
      store.apply(door(`fill-${written}`, { spec: 'x'.repeat(100_000) }), 'one')
      written++
    } catch (error) {
      failure = error
    }
  }
  const { name, code, message } = failure as { name: string; code: string; message: string }
  assert.equal(name, 'PosternError')
  assert.equal(code, 'StorageFull')
  assert.equal(message, `no space left in ${folder}: nothing was changed; make room there, and it goes on`)
  assert.equal(changes.length, written)
  assert.equal(store.list(DOOR).length, written + 1)
  const fill = () =>
    store.batch(() => {
      for (let index = 0; index < 5; index++) {
        try {
          store.apply(door(`batch-${index}`, { spec: 'x'.repeat(100_000) }), 'one')
        } catch {
          // Going on after it must not make the rest look done.
        }
      }
      store.apply(door('kept', { spec: 'y'.repeat(100_000) }), 'one')
    })
  assert.throws(fill, { code: 'StorageFull' })
  assert.deepEqual(store.get(ref('kept'))?.spec, { x: 1 })
  assert.equal(store.list(DOOR).length, written + 1)
  makeRoom()
  store.apply(door('kept', { spec: { x: 2 } }), 'one')
  assert.deepEqual(store.get(ref('kept'))?.spec, { x: 2 })
}

test('a database at its limit changes nothing, and goes on after a removal', () => {
  using made = make({ maxBytes: 2_000_000 })
  fillUp(made.store, made.folder, () => made.store.remove(ref('fill-0')))
})

test('a full disk changes nothing, and it goes on when there is room', (context) => {
  using made = temporary()
  const disk = join(made.folder, 'disk')
  mkdirSync(disk)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', disk], { stdio: 'ignore' })
  } catch {
    return context.skip('needs the right to mount a small disk')
  }
  try {
    const ballast = join(disk, 'ballast')
    writeFileSync(ballast, Buffer.alloc(500_000))
    const store = new Store(join(disk, 'state'))
    try {
      fillUp(store, join(disk, 'state'), () => rmSync(ballast))
    } finally {
      store.close()
    }
    const again = new Store(join(disk, 'state'))
    assert.deepEqual(again.get(ref('kept'))?.spec, { x: 2 })
    again.close()
  } finally {
    execFileSync('umount', [disk])
  }
})

test('only its user may read it; a damaged or newer file is named', () => {
  using made = temporary()
  const state = join(made.folder, 'state')
  const store = new Store(state)
  store.apply(door('a'), 'one')
  assert.equal(statSync(state).mode & 0o777, 0o700)
  for (const file of ['objects.db', 'objects.db-wal', 'objects.db-shm']) {
    assert.equal(statSync(join(state, file)).mode & 0o777, 0o600, file)
  }
  store.close()
  const db = new DatabaseSync(join(state, 'objects.db'))
  db.exec('PRAGMA user_version = 99')
  db.close()
  assert.throws(() => new Store(state), { code: 'StorageNewer', message: /newer version of Postern/ })
  const broken = join(made.folder, 'broken')
  mkdirSync(broken)
  writeFileSync(join(broken, 'objects.db'), 'no database'.repeat(1000))
  assert.throws(() => new Store(broken), { code: 'StorageCorrupt', message: /objects.db is damaged/ })
  assert.throws(() => new Store(join(broken, 'objects.db')), { code: 'StorageFailed' })
})
