import assert from 'node:assert/strict'
import { test } from 'node:test'
import { packTar, unpackTar } from 'modern-tar'
import { generateClientKey } from './client-key.ts'
import { generateOnionKey } from './key.ts'
import { type ArchivedKey, packKeys, unpackKeys } from './key-archive.ts'

const NOW = Date.parse('2030-01-01T00:00:00Z')

function key(more: Partial<ArchivedKey> = {}): ArchivedKey {
  return {
    namespace: 'news',
    secret: 'web-onion-key',
    onion: 'web',
    key: generateOnionKey(),
    clients: [],
    clientKeys: new Map(),
    ...more,
  }
}

type Entry = Awaited<ReturnType<typeof unpackTar>>[number]

/** The archive of some keys, with its entries changed. */
async function changed(keys: ArchivedKey[], change: (entries: Entry[]) => Entry[]): Promise<Uint8Array> {
  return packTar(change(await unpackTar(await packKeys(keys, NOW))))
}

const file = (name: string, content: string | Uint8Array): Entry => {
  const data = new Uint8Array(Buffer.from(content as string))
  return { header: { name, size: data.length }, data }
}

test('what goes in comes out: keys, clients, their own keys, former keys, and the longest names', async () => {
  const [alice, bob] = [generateClientKey(), generateClientKey()]
  const long = 'n'.repeat(240)
  const keys = [
    key({
      clients: [
        { name: 'alice', publicKey: alice.publicKey },
        { name: 'bob', publicKey: bob.publicKey },
      ],
      clientKeys: new Map([['alice', alice.secret]]),
    }),
    key({ namespace: 'm'.repeat(63), secret: `${long}-onion-key`, onion: long }),
    key({ secret: 'old', until: '2030-02-01T00:00:00Z' }),
  ]
  assert.deepEqual(await unpackKeys(await packKeys(keys, NOW)), keys)
  assert.deepEqual(await unpackKeys(await packKeys([], NOW)), [])
})

test('each folder is one that tor takes, byte for byte', async () => {
  const one = key()
  const entries = await unpackTar(await packKeys([one], NOW))
  assert.deepEqual(
    entries.map(({ header }) => header.name),
    [
      'postern-keys.json',
      'news/web-onion-key/hs_ed25519_secret_key',
      'news/web-onion-key/hs_ed25519_public_key',
      'news/web-onion-key/hostname',
    ],
  )
  assert.ok(entries.every(({ header }) => header.mode === 0o600))
  assert.equal(Buffer.from(entries[3]!.data!).toString(), `${one.key.address}.onion\n`)
  assert.equal(entries[1]!.data!.length, 96)
})

test('an archive that is not whole is refused, with the entry that is wrong', async () => {
  const one = key()
  const other = key({ secret: 'other' })
  const folder = 'news/web-onion-key'
  const whole = await packKeys([one], NOW)
  const without = (name: string) => (entries: Entry[]) => entries.filter(({ header }) => header.name !== name)
  const instead = (name: string, content: string | Uint8Array) => (entries: Entry[]) =>
    entries.map((entry) => (entry.header.name === name ? file(name, content) : entry))
  const added =
    (...more: Entry[]) =>
    (entries: Entry[]) => [...entries, ...more]
  const manifest =
    (change: (value: { version: number; keys: object[] }) => unknown) => (entries: Entry[]) => {
      const value = JSON.parse(Buffer.from(entries[0]!.data!).toString())
      return instead('postern-keys.json', JSON.stringify(change(value)))(entries)
    }
  const cases: [string, Uint8Array, RegExp][] = [
    ['nothing', new Uint8Array(), /is damaged/],
    ['cut off', whole.slice(0, 1500), /is damaged|is not in it/],
    ['no tar', Buffer.from('hello '.repeat(500)), /is damaged/],
    ['no manifest', await changed([one], without('postern-keys.json')), /is no backup of keys/],
    ['no JSON', await changed([one], instead('postern-keys.json', '{')), /is no JSON/],
    [
      'of the future',
      await changed(
        [one],
        manifest((m) => ({ ...m, version: 2 })),
      ),
      /has version 2/,
    ],
    [
      'no keys',
      await changed(
        [one],
        manifest(() => ({ version: 1, created: 'x' })),
      ),
      /keys: /,
    ],
    [
      'named twice',
      await changed(
        [one],
        manifest((m) => ({ ...m, keys: [...m.keys, ...m.keys] })),
      ),
      /or twice/,
    ],
    [
      'not named',
      await changed(
        [one, other],
        manifest((m) => ({ ...m, keys: m.keys.slice(1) })),
      ),
      /is not named/,
    ],
    [
      'no key',
      await changed([one], without(`${folder}/hs_ed25519_secret_key`)),
      /There is no hs_ed25519_secret/,
    ],
    [
      'another key',
      await changed([one], instead(`${folder}/hs_ed25519_secret_key`, other.key.secret)),
      /public_key/,
    ],
    ['another hostname', await changed([one], instead(`${folder}/hostname`, 'a.onion')), /hostname/],
    [
      'unclamped',
      await changed([one], instead(`${folder}/hs_ed25519_secret_key`, Buffer.alloc(64, 255))),
      /secret_key/,
    ],
    [
      'a broken client',
      await changed([one], added(file(`${folder}/authorized_clients/a.auth`, 'x'))),
      /a\.auth/,
    ],
    ['upwards', await changed([one], added(file('news/../../etc/passwd', 'x'))), /no path/],
    ['absolute', await changed([one], added(file('/etc/passwd', 'x'))), /no path/],
    ['an entry twice', await changed([one], added(file(`${folder}/hostname`, 'x'))), /twice/],
    [
      'a link',
      await changed(
        [one],
        added({ header: { name: `${folder}/x`, size: 0, type: 'symlink', linkname: '/etc' } }),
      ),
      /is a symlink/,
    ],
    ['too large', new Uint8Array(64 * 1024 * 1024 + 1), /more than 64 MB/],
  ]
  for (const [what, archive, message] of cases) {
    await assert.rejects(unpackKeys(archive), { code: 'ArchiveInvalid', message }, what)
  }
})

test('a damaged byte anywhere is an error, and never another key', async () => {
  const one = key()
  const whole = await packKeys([one], NOW)
  for (let at = 0; at < whole.length; at += 37) {
    const damaged = Uint8Array.from(whole)
    damaged[at] = damaged[at]! ^ 0x10
    const read = await unpackKeys(damaged).catch((error: { code?: string }) => error)
    if (Array.isArray(read)) assert.equal(read[0]?.key.address, one.key.address)
    else assert.equal(read.code, 'ArchiveInvalid')
  }
})

test('two thousand keys', { timeout: 60_000 }, async () => {
  const one = key()
  const many = Array.from({ length: 2_000 }, (_, index) => ({ ...one, secret: `s${index}` }))
  const archive = await packKeys(many, NOW)
  assert.ok(archive.length < 64 * 1024 * 1024)
  const entries = await unpackTar(archive)
  assert.equal(entries.length, 6_001)
})
