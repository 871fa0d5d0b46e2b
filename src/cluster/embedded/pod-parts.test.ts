import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, it } from 'node:test'
import fc from 'fast-check'
import type { Service } from '../kinds.ts'
import { AddressBook } from './pod-address.ts'
import { endpointSlice, type PodEndpoint } from './pod-endpoints.ts'
import { quantity } from './pod-fields.ts'
import { writeVolume } from './pod-files.ts'
import { mountReplacer } from './pod-launch.ts'
import { LastLine, PodLogFile } from './pod-log.ts'
import { podOf, replicasOf, TEMPLATE_HASH, type Workload } from './pod-template.ts'
import { safePath } from './pod-volumes.ts'

const root = mkdtempSync(join(tmpdir(), 'pod-parts-'))
after(() => rmSync(root, { recursive: true, force: true }))

it('replaces the longest mount path, at path boundaries only', () => {
  const replace = mountReplacer(
    new Map([
      ['/data', '/s/v/data'],
      ['/data/keys', '/s/v/keys'],
      ['/tmp', '/tmp/s/v/tmp'],
    ]),
  )
  const table: [string, string][] = [
    ['/data', '/s/v/data'],
    ['/data/', '/s/v/data/'],
    ['/data/keys/a', '/s/v/keys/a'],
    ['/data/keystore', '/s/v/data/keystore'],
    ['/database', '/database'],
    ['/data-2', '/data-2'],
    ['/x/data', '/x/data'],
    ['http://host/data', 'http://host/data'],
    ['--a=/data,b=/data/keys:/tmp', '--a=/s/v/data,b=/s/v/keys:/tmp/s/v/tmp'],
    ['$(X)/data', '$(X)/data'],
    ['unix:/tmp/a b /data', 'unix:/tmp/s/v/tmp/a b /s/v/data'],
  ]
  for (const [given, wanted] of table) assert.equal(replace(given), wanted, given)
})

it('never hands out an address or folder twice, and remembers both', () => {
  const file = join(root, 'pods.json')
  const keys = Array.from({ length: 200 }, (_, index) => `shop/web-${index}`)
  const book = new AddressBook(file, 'seed')
  const places = keys.slice(0, 150).map((key) => book.claim(key))
  const again = new AddressBook(file, 'another seed')
  assert.deepEqual(
    keys.slice(0, 150).map((key) => again.claim(key)),
    places,
  )
  places.push(...keys.slice(150).map((key) => again.claim(key)))
  assert.equal(new Set(places.map(({ address }) => address)).size, 200)
  assert.equal(new Set(places.map(({ id }) => id)).size, 200)
  for (const { address } of places) assert.match(address, /^127\.77\.\d{1,3}\.\d{1,3}$/)
})

it('starts a new address book when the file is damaged', () => {
  const file = join(root, 'damaged.json')
  for (const text of [
    '',
    '{"pods":',
    'null',
    '{"pods":{"a":null,"b":{"id":"../..","address":"127.77.0.1"}}}',
  ]) {
    writeFileSync(file, text)
    assert.equal(new AddressBook(file, 'seed').claim('shop/web-0').id, '1')
  }
})

it('swaps all files of a volume at once', () => {
  const folder = join(root, 'volume')
  const file = (text: string): { data: Buffer; mode: number } => ({ data: Buffer.from(text), mode: 0o600 })
  writeVolume(
    folder,
    new Map([
      ['a', file('1')],
      ['deep/b', file('2')],
    ]),
    0o700,
  )
  assert.equal(readFileSync(join(folder, 'deep/b'), 'utf8'), '2')
  writeVolume(folder, new Map([['a', file('3')]]), 0o700)
  assert.equal(readFileSync(join(folder, 'a'), 'utf8'), '3')
  assert.ok(!existsSync(join(folder, 'deep')))
  assert.equal(readdirSync(folder).length, 3, 'one data folder, ..data and a')
})

it('keeps every path inside its volume', () => {
  for (const path of ['..', '../a', 'a/../../b', '/etc', '', '.', 'a\0b', '..data']) {
    assert.throws(() => safePath(path), { code: 'CreateContainerConfigError' }, path)
  }
  fc.assert(
    fc.property(fc.string(), (path) => {
      let safe: string
      try {
        safe = safePath(path)
      } catch {
        return
      }
      assert.ok(join('/v', safe).startsWith('/v/'))
    }),
  )
})

it('reads quantities', () => {
  assert.deepEqual(['1', '64Mi', '1.5G', '250m'].map(quantity), [1, 64 * 2 ** 20, 1.5e9, 0.25])
  for (const text of ['', 'Mi', '1MB', '-1', '1e99999', '9'.repeat(400)]) {
    assert.throws(() => quantity(text), { code: 'CreateContainerConfigError' }, text)
  }
})

it('turns a log over at its limit', () => {
  const log = new PodLogFile(join(root, 'logs', 'a.log'), 10)
  for (const text of ['12345678', 'abcdefgh', 'ABCDEFGH']) log.write(Buffer.from(text))
  log.close()
  assert.equal(readFileSync(log.path, 'utf8'), 'ABCDEFGH')
  assert.equal(readFileSync(`${log.path}.1`, 'utf8'), 'abcdefgh')
})

it('remembers the last line that says something', () => {
  const last = new LastLine()
  for (const text of ['one\ntw', 'o\x1b[0m\n', '\n  \n']) last.push(Buffer.from(text))
  assert.equal(last.text, 'two [0m')
})

function workload(spec: NonNullable<Workload['spec']>): Workload {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'shop', uid: 'u' },
    spec,
  }
}

it('hashes a template by what it says, without the annotations that hurry volumes', () => {
  const hash = (annotations: Record<string, string>, spec: object): string | undefined =>
    podOf(workload({ template: { metadata: { annotations }, spec: spec as never } }), 0).metadata
      .annotations?.[TEMPLATE_HASH]
  const base = hash({}, { containers: [{ name: 'a', image: 'x' }] })
  assert.equal(hash({ 'sync.postern.dev/a': '1' }, { containers: [{ image: 'x', name: 'a' }] }), base)
  assert.notEqual(hash({ other: '1' }, { containers: [{ name: 'a', image: 'x' }] }), base)
  assert.notEqual(hash({}, { containers: [{ name: 'a', image: 'y' }] }), base)
})

it('bounds replicas', () => {
  const counts = [undefined, 0, 3, -1, 1e9, 1.5].map((replicas) =>
    replicasOf(workload(replicas === undefined ? {} : { replicas })),
  )
  assert.deepEqual(counts, [1, 0, 3, 0, 50, 1])
})

it('names a volume of a claim template after the pod', () => {
  const pod = podOf(
    workload({
      template: { spec: { containers: [{ name: 'a' }] } },
      volumeClaimTemplates: [{ metadata: { name: 'data' } }],
    }),
    2,
  )
  assert.deepEqual(pod.spec?.volumes, [{ name: 'data', persistentVolumeClaim: { claimName: 'data-web-2' } }])
})

it('selects by all labels, in the own namespace, and leaves out other port numbers', () => {
  const pod = (
    name: string,
    port: number,
    labels: Record<string, string>,
    namespace = 'shop',
  ): PodEndpoint => ({
    name,
    namespace,
    labels,
    address: `127.77.0.${name.length}`,
    ready: true,
    terminating: name === 'ccc',
    containers: [{ name: 'a', ports: [{ name: 'web', containerPort: port }] }],
  })
  const service: Service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'front', namespace: 'shop', uid: 'u' },
    spec: { selector: { app: 'web', tier: 'x' }, ports: [{ port: 80, targetPort: 'web' }, { port: 81 }] },
  }
  const labels = { app: 'web', tier: 'x' }
  const slice = endpointSlice(service, [
    pod('ccc', 1000, labels),
    pod('a', 1000, labels),
    pod('bb', 2000, labels),
    pod('d', 1000, { app: 'web' }),
    pod('e', 1000, labels, 'other'),
  ])
  assert.deepEqual(
    slice.endpoints?.map(({ targetRef, conditions }) => [targetRef?.name, conditions?.ready]),
    [
      ['a', true],
      ['ccc', false],
    ],
  )
  assert.deepEqual(
    slice.ports?.map(({ port }) => port),
    [1000, 81],
  )
  const open = { ...service, spec: { ports: [{ port: 80 }] } }
  assert.deepEqual(endpointSlice(open, [pod('a', 1000, labels)]).endpoints, [])
})
