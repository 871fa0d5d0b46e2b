import assert from 'node:assert/strict'
import {
  appendFileSync,
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { Kind } from '../../core/resource.ts'
import { SOURCE_ANNOTATION } from '../cluster.ts'
import { CONFIG_MAP } from '../kinds.ts'
import { type FolderChange, ManifestFolder } from './folder.ts'
import type { ManifestKind } from './manifests.ts'
import { Store, type StoreOptions } from './store.ts'

const DOOR: Kind = { apiVersion: 'test.postern.dev/v1', kind: 'Door', plural: 'doors', namespaced: true }
const KINDS: ManifestKind[] = [
  {
    kind: DOOR,
    validate: (document) =>
      typeof (document as { spec?: { size?: unknown } }).spec?.size === 'number'
        ? []
        : [{ path: ['spec', 'size'], message: 'must be a number' }],
  },
  { kind: CONFIG_MAP, validate: () => [] },
]

const door = (name: string, size: unknown = 1, more = '') =>
  `apiVersion: test.postern.dev/v1\nkind: Door\nmetadata:\n  name: ${name}\n${more}spec:\n  size: ${size}\n`

class House {
  readonly base: string = mkdtempSync(join(tmpdir(), 'postern-folder-'))
  readonly folder: string = join(this.base, 'manifests')
  store: Store
  readonly told: string[] = []
  readonly changes: string[] = []
  watched: ManifestFolder | undefined

  constructor(options: StoreOptions = {}) {
    mkdirSync(this.folder)
    this.store = new Store(join(this.base, 'state'), options)
  }

  write(name: string, text: string): void {
    mkdirSync(dirname(join(this.folder, name)), { recursive: true })
    writeFileSync(join(this.folder, name), text)
  }

  remove(name: string): void {
    rmSync(join(this.folder, name), { recursive: true })
  }

  async start(options: { settleMs?: number; rescanMs?: number } = {}): Promise<void> {
    this.watched = new ManifestFolder({
      folder: this.folder,
      store: this.store,
      kinds: KINDS,
      onProblem: ({ text }) => this.told.push(text),
      onChange: (change: FolderChange) =>
        this.changes.push(`${change.result} ${change.ref.name} (${change.source})`),
      debounceMs: 5,
      settleMs: options.settleMs ?? 20,
      // So that it is the watch that is tested, and a missed one ends in the limit of the wait.
      rescanMs: options.rescanMs ?? 60_000,
    })
    await this.watched.start()
  }

  async restart(options: { settleMs?: number } = {}): Promise<void> {
    this.watched?.close()
    this.changes.length = 0
    this.told.length = 0
    await this.start(options)
  }

  /** `name=size`, of all that is there. */
  doors(): string[] {
    return this.store
      .list(DOOR)
      .map((object) => `${object.metadata.name}=${(object.spec as { size: unknown }).size}`)
  }

  problems(): string[] {
    return this.watched!.problems().map((problem) => problem.text)
  }

  async until(doors: string[], problems?: string[]): Promise<void> {
    const seen = () => JSON.stringify([this.doors(), problems && this.problems()])
    const wanted = JSON.stringify([doors, problems])
    const end = performance.now() + 20_000
    while (seen() !== wanted) {
      assert.ok(performance.now() < end, `wanted ${wanted}, still ${seen()}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  [Symbol.dispose](): void {
    this.watched?.close()
    this.store.close()
    rmSync(this.base, { recursive: true })
  }
}

test('the store becomes as the folder says, and follows it', async () => {
  using house = new House()
  house.write('a.yaml', `${door('a')}---\n${door('b')}`)
  house.write('sub/deeper/c.yml', door('c'))
  house.write(
    'd.json',
    JSON.stringify({ apiVersion: DOOR.apiVersion, kind: 'Door', metadata: { name: 'd' }, spec: { size: 4 } }),
  )
  house.write('.hidden.yaml', door('hidden'))
  house.write('.git/x.yaml', door('hidden'))
  house.write('README.md', 'no manifest')
  await house.start()
  assert.deepEqual(house.doors(), ['a=1', 'b=1', 'c=1', 'd=4'])
  assert.deepEqual(house.problems(), [])
  const c = house.store.list(DOOR)[2]
  assert.deepEqual(c?.metadata.annotations, { [SOURCE_ANNOTATION]: 'sub/deeper/c.yml' })
  assert.equal(c?.metadata.namespace, 'default')
  const revision = house.store.revision
  await house.restart()
  assert.equal(house.store.revision, revision)
  assert.deepEqual(house.changes, [])

  house.write('a.yaml', `${door('a', 2)}---\n${door('b')}`)
  await house.until(['a=2', 'b=1', 'c=1', 'd=4'])
  house.write('a.yaml', door('a', 2))
  await house.until(['a=2', 'c=1', 'd=4'])
  house.write('new/folder/e.yaml', door('e'))
  await house.until(['a=2', 'c=1', 'd=4', 'e=1'])
  house.write('new/folder/e.yaml', door('e', 5))
  await house.until(['a=2', 'c=1', 'd=4', 'e=5'])
  house.remove('new')
  house.remove('d.json')
  await house.until(['a=2', 'c=1'])
  assert.deepEqual(house.changes.sort(), [
    'changed a (a.yaml)',
    'changed e (new/folder/e.yaml)',
    'created e (new/folder/e.yaml)',
    'removed b (a.yaml)',
    'removed d (d.json)',
    'removed e (new/folder/e.yaml)',
  ])
})

test('what vanished while nobody looked is removed; what the folder never applied is not', async () => {
  using house = new House()
  house.write('a.yaml', door('a'))
  house.write('b.yaml', door('b'))
  const metadata = { namespace: 'default', name: 'theirs', annotations: { [SOURCE_ANNOTATION]: 'a.yaml' } }
  house.store.apply({ apiVersion: DOOR.apiVersion, kind: 'Door', metadata, spec: { size: 9 } }, 'somebody')
  await house.start()
  house.watched?.close()
  house.remove('a.yaml')
  await house.restart()
  assert.deepEqual(house.doors(), ['b=1', 'theirs=9'])
})

test('an object that moves to another file stays the same object', async () => {
  using house = new House()
  house.write('a.yaml', door('a'))
  await house.start()
  const { uid } = house.store.list(DOOR)[0]!.metadata
  renameSync(join(house.folder, 'a.yaml'), join(house.folder, 'b.yaml'))
  house.write('c.yaml', door('c'))
  await house.until(['a=1', 'c=1'], [])
  house.remove('c.yaml')
  await house.until(['a=1'], [])
  assert.equal(house.store.list(DOOR)[0]?.metadata.uid, uid)
  assert.equal(house.store.list(DOOR)[0]?.metadata.annotations?.[SOURCE_ANNOTATION], 'b.yaml')
})

test('what is invalid changes nothing, is told once, and heals', async () => {
  using house = new House()
  house.write('a.yaml', `${door('a')}---\n${door('b')}---\n${door('c')}`)
  await house.start()
  house.write('a.yaml', `${door('a', 'wide')}---\n${door('b', 2)}`)
  const problem = 'a.yaml:6: Door default/a: spec.size: must be a number'
  // a stays as it was, b changes, c goes.
  await house.until(['a=1', 'b=2'], [problem])
  house.write('b.yaml', door('d'))
  await house.until(['a=1', 'b=2', 'd=1'], [problem])
  assert.deepEqual(house.told, [problem])
  house.write('a.yaml', door('a', 3))
  await house.until(['a=3', 'd=1'], [])
  house.write('a.yaml', door('a', 'wide'))
  await house.until(['a=3', 'd=1'], [problem])
  assert.deepEqual(house.told, [problem, problem])
})

test('a file that is no YAML, or has an object that nobody knows, keeps all that came from it', async () => {
  using house = new House()
  house.write('a.yaml', `${door('a')}---\n${door('b')}`)
  await house.start()
  house.write('a.yaml', `${door('a', 2)}---\n a: b: c\n`)
  await house.until(
    ['a=1', 'b=1'],
    [
      'a.yaml:8: has a field inside a value: put the value in quotes, or on a line of its own; nothing in this file is changed until it can be read',
    ],
  )
  house.write('a.yaml', `${door('a', 2)}---\n${door('b', 2).replace('Door', 'Dor')}`)
  await house.until(
    ['a=2', 'b=1'],
    [
      'a.yaml:9: kind: there is no kind Dor in test.postern.dev/v1: did you mean kind: Door of apiVersion: test.postern.dev/v1?',
    ],
  )
  await house.restart()
  assert.deepEqual(house.doors(), ['a=2', 'b=1'])
  house.write('a.yaml', Buffer.from([0x61, 0x3a, 0xff, 0xfe]).toString('latin1'))
  writeFileSync(join(house.folder, 'a.yaml'), Buffer.from([0x61, 0x3a, 0x20, 0xff, 0xfe]))
  await house.until(
    ['a=2', 'b=1'],
    ['a.yaml: is no UTF-8 text: save it as UTF-8; nothing in it is changed until then'],
  )
  house.write('a.yaml', '')
  await house.until(
    ['a=2', 'b=1'],
    ['a.yaml: is empty: nothing is changed; remove the file to remove what it declared'],
  )
  house.write('a.yaml', '# only a comment\n')
  await house.until([], [])
})

test('a file that is too big is not opened, and what came from it stays', async () => {
  using house = new House()
  house.write('a.yaml', door('a'))
  await house.start()
  const file = openSync(join(house.folder, 'a.yaml'), 'r+')
  ftruncateSync(file, 9 * 1024 * 1024)
  closeSync(file)
  await house.until(['a=1'], ['a.yaml: is bigger than 8 MB: split it; nothing in it is changed until then'])
})

test('an object that is too big is told, and the others are applied', async () => {
  using house = new House()
  house.write(
    'a.yaml',
    `${door('a', 1, `  annotations: {x: "${'x'.repeat(1_700_000)}"}\n`)}---\n${door('b')}`,
  )
  await house.start()
  assert.deepEqual(house.doors(), ['b=1'])
  assert.deepEqual(house.problems(), [
    'a.yaml:1: Door default/a is bigger than 1.5 MB: split it or keep large data elsewhere',
  ])
})

test('the second of two documents of one object changes nothing, and takes over when the first goes', async () => {
  using house = new House()
  house.write('b.yaml', `${door('x', 2)}---\n${door('y')}`)
  await house.start()
  house.write('a.yaml', `# first\n${door('x', 1)}`)
  const problem =
    'b.yaml:1: Door default/x: is declared already in a.yaml:2: remove one of the two; this one changes nothing'
  await house.until(['x=1', 'y=1'], [problem])
  house.remove('a.yaml')
  await house.until(['x=2', 'y=1'], [])
})

test('a folder that is gone changes nothing until it is back', async () => {
  using house = new House()
  house.write('a.yaml', door('a'))
  house.write('b.yaml', door('b'))
  await house.start({ rescanMs: 30 })
  const gone = join(house.base, 'elsewhere')
  renameSync(house.folder, gone)
  const problem = `folder ${house.folder} is gone: nothing is changed until it is back`
  await house.until(['a=1', 'b=1'], [problem])
  assert.deepEqual(house.told, [problem])
  rmSync(join(gone, 'b.yaml'))
  renameSync(gone, house.folder)
  await house.until(['a=1'], [])
  house.write('c.yaml', door('c'))
  await house.until(['a=1', 'c=1'], [])
})

test('a folder that was never there is a problem, and starts when it comes', async () => {
  using house = new House()
  rmSync(house.folder, { recursive: true })
  await house.start({ rescanMs: 30 })
  assert.deepEqual(house.problems(), [`folder ${house.folder} is gone: nothing is changed until it is back`])
  house.write('a.yaml', door('a'))
  await house.until(['a=1'], [])
})

test('links are followed, circles are not, and a swapped link is a change', async () => {
  using house = new House()
  // As the kubelet lays out a ConfigMap.
  house.write('..1/web.yaml', door('a'))
  house.write('..2/web.yaml', door('a', 2))
  symlinkSync('..1', join(house.folder, '..data'))
  symlinkSync('..data/web.yaml', join(house.folder, 'web.yaml'))
  mkdirSync(join(house.folder, 'sub'))
  symlinkSync('..', join(house.folder, 'sub/up'))
  symlinkSync('nowhere', join(house.folder, 'dangling.yaml'))
  await house.start()
  assert.deepEqual(house.doors(), ['a=1'])
  assert.deepEqual(house.problems(), [])
  symlinkSync('..2', join(house.folder, '..new'))
  renameSync(join(house.folder, '..new'), join(house.folder, '..data'))
  await house.until(['a=2'], [])
})

test('beyond 1,000 files nothing is read, and nothing is removed', async () => {
  using house = new House()
  house.write('z.yaml', door('z'))
  await house.start()
  for (let index = 0; index < 1000; index++)
    writeFileSync(join(house.folder, `f${index}.yaml`), '# nothing\n')
  const problem = `folder ${house.folder} has more than 1000 manifests, or is too deep: only the first ones are read`
  await house.until(['z=1'], [problem])
  house.remove('f0.yaml')
  await house.until(['z=1'], [])
})

test('what is missing for a moment, or half written, is not removed', async () => {
  using house = new House()
  house.write('a.yaml', `${door('a')}---\n${door('b')}`)
  await house.start({ settleMs: 600_000 })
  const { uid } = house.store.list(DOOR)[1]!.metadata
  house.write('a.yaml', door('a', 2))
  await house.until(['a=2', 'b=1'], [])
  appendFileSync(join(house.folder, 'a.yaml'), `---\n${door('b', 2)}`)
  await house.until(['a=2', 'b=2'], [])
  house.remove('a.yaml')
  house.write('c.yaml', door('c'))
  await house.until(['a=2', 'b=2', 'c=1'], [])
  house.write('a.yaml', door('b', 3))
  await house.until(['a=2', 'b=3', 'c=1'], [])
  assert.equal(house.store.list(DOOR)[1]?.metadata.uid, uid)
})

test('an object that somebody else removes comes back', async () => {
  using house = new House()
  house.write('a.yaml', `${door('a')}---\n${door('b')}`)
  await house.start()
  house.store.remove({ apiVersion: DOOR.apiVersion, kind: 'Door', namespace: 'default', name: 'a' })
  await house.until(['a=1', 'b=1'], [])
})

test('fields that others set stay, and status in a manifest is nobody’s', async () => {
  using house = new House()
  house.write('a.yaml', `${door('a')}status: {forged: true}\n`)
  await house.start()
  const ref = { apiVersion: DOOR.apiVersion, kind: 'Door', namespace: 'default', name: 'a' }
  house.store.applyStatus({ ref, status: { real: true } }, 'controller')
  house.store.apply(
    { ...ref, metadata: { namespace: 'default', name: 'a', finalizers: ['x/y'] } },
    'controller',
  )
  house.write('a.yaml', door('a', 2))
  await house.until(['a=2'], [])
  const object = house.store.get(ref)
  assert.deepEqual(object?.status, { real: true })
  assert.deepEqual(object?.metadata.finalizers, ['x/y'])
})

test('a full disk is one problem, changes nothing, and passes', async () => {
  using house = new House({ maxBytes: 2_000_000 })
  for (let index = 0; index < 30; index++) {
    house.write(`f${index}.yaml`, door(`f${index}`, 1, `  annotations: {x: "${'x'.repeat(100_000)}"}\n`))
  }
  await house.start({ rescanMs: 30 })
  const problem = `no space left in ${join(house.base, 'state')}: nothing was changed; make room there, and it goes on`
  assert.deepEqual(house.problems(), [problem])
  assert.deepEqual(house.doors(), [])
  for (let index = 5; index < 30; index++) house.remove(`f${index}.yaml`)
  await house.until(['f0=1', 'f1=1', 'f2=1', 'f3=1', 'f4=1'], [])
  assert.deepEqual(house.told, [problem])
})
