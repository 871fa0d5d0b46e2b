import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { generateIdentity } from 'age-encryption'
import { Store } from '../../cluster/embedded/store.ts'
import { SECRET } from '../../cluster/kinds.ts'
import { ONION_SERVICE, type OnionService } from '../../tor/api/onion-service.ts'
import { generateClientKey, publicLine } from '../../tor/onion/client-key.ts'
import { writeOnionKeyFiles } from '../../tor/onion/files.ts'
import { generateOnionKey } from '../../tor/onion/key.ts'
import { clientSecret } from '../../tor/operator/client-keys.ts'
import { keySecret } from '../../tor/operator/onion-keys.ts'
import { exportKeys } from './export.ts'
import { importKeys } from './import.ts'
import {
  bytesOf,
  file,
  identityFile,
  lines,
  looked,
  onion,
  path,
  print,
  printed,
  recipient,
  say,
  secretOf,
  served,
  state,
  torFolder,
  within,
} from './keys-fixture.ts'

test('what is exported comes back: the same Secrets, in an empty place', async () => {
  const web = served('web', {
    clientAuthorization: { clients: [{ name: 'alice', generate: true }] },
    formerKeys: [{ name: 'old', until: '2999-01-01T00:00:00Z' }],
  })
  const old = generateOnionKey()
  within((store) => {
    const object = store.get({ ...ONION_SERVICE, namespace: 'news', name: 'web' } as never) as OnionService
    store.create({ ...keySecret(object, old), metadata: { namespace: 'news', name: 'old' } }, 'test')
    store.create(clientSecret(object, 'alice', generateClientKey(), web.address), 'test')
  })
  const other = served('shop', {}, 'market')
  const output = path('all.age')
  const seal = { state, namespace: undefined, recipient: [recipient], output, withClientKeys: true }
  await exportKeys([], seal, say).catch((error: Error) => assert.fail(`${error.message}: ${lines.join()}`))
  assert.match(lines.join('\n'), /3 keys in .*all\.age/)
  assert.equal(statSync(output).mode & 0o777, 0o600)
  const sealed = readFileSync(output)
  for (const key of [web, other, old]) assert.equal(sealed.indexOf(key.secret.subarray(0, 32)), -1)

  const empty = path('empty')
  mkdirSync(empty)
  new Store(empty).close()
  await importKeys(output, { state: empty, identityFile }, { say, print })
  assert.deepEqual(bytesOf(secretOf('web-onion-key', 'news', empty)), Buffer.from(web.secret))
  assert.deepEqual(bytesOf(secretOf('old', 'news', empty)), Buffer.from(old.secret))
  assert.deepEqual(bytesOf(secretOf('shop-onion-key', 'market', empty)), Buffer.from(other.secret))
  const labels = secretOf('web-onion-key', 'news', empty)?.metadata.labels
  assert.equal(labels?.['app.kubernetes.io/managed-by'], 'tor-operator', 'the operator finds it by its label')
  assert.deepEqual(
    secretOf('web-client-alice', 'news', empty)?.data,
    secretOf('web-client-alice')?.data,
    'the client can come in as before',
  )
  // Again: nothing to do.
  lines.length = 0
  await importKeys(output, { state: empty, identityFile }, { say, print })
  assert.ok(
    lines.every((line) => line.includes('unchanged')),
    lines.join('\n'),
  )
})

test('by a passphrase as well, and into one namespace', async () => {
  const key = served('web')
  const passphraseFile = file('pass', 'a long passphrase\nand a note\n')
  const output = path('one.age')
  await exportKeys(['web'], { state, namespace: 'news', passphraseFile, output }, say)
  await importKeys(output, { state, passphraseFile, namespace: 'elsewhere' }, { say, print })
  assert.deepEqual(bytesOf(secretOf('web-onion-key', 'elsewhere')), Buffer.from(key.secret))
  const wrong = file('wrong', 'a wrong passphrase')
  await assert.rejects(importKeys(output, { state, passphraseFile: wrong }, { say, print }), {
    code: 'ArchiveLocked',
    message: /another passphrase/,
  })
})

test('a key that is missing is left out and said, in the end as an error', async () => {
  served('web')
  onion('bare')
  const output = path('some.age')
  const all = exportKeys([], { state, namespace: 'news', recipient: [recipient], output }, say)
  await assert.rejects(all, { code: 'KeysIncomplete' })
  assert.match(lines.join('\n'), /left out: news\/bare: Secret bare-onion-key is not there/)
  const [only, ...more] = await looked({ file: output, identityFile })
  assert.deepEqual([only?.onion, more], ['web', []])
})

test('another key in its place is kept, unless it is to go', async () => {
  const first = served('web')
  const output = path('web.age')
  await exportKeys([], { state, namespace: 'news', recipient: [recipient], output }, say)
  const second = generateOnionKey()
  within((store) => {
    const object = { metadata: { namespace: 'news', name: 'web' } } as OnionService
    store.apply(keySecret(object, second), 'test')
  })
  const bring = (more: object = {}) => importKeys(output, { state, identityFile, ...more }, { say, print })
  await assert.rejects(bring(), { code: 'KeyTaken', message: /news\/web-onion-key.*nothing was imported/ })
  assert.deepEqual(bytesOf(secretOf('web-onion-key')), Buffer.from(second.secret))
  await bring({ replace: true, dryRun: true })
  assert.deepEqual(bytesOf(secretOf('web-onion-key')), Buffer.from(second.secret))
  await bring({ replace: true })
  assert.deepEqual(bytesOf(secretOf('web-onion-key')), Buffer.from(first.secret))
})

test('one key that cannot go in keeps all of them out', async () => {
  served('a')
  served('b')
  const output = path('two.age')
  await exportKeys([], { state, namespace: 'news', recipient: [recipient], output }, say)
  const empty = path('empty')
  mkdirSync(empty)
  within((store) => {
    const object = { metadata: { namespace: 'news', name: 'b' } } as OnionService
    store.create(keySecret(object, generateOnionKey()), 'test')
  }, empty)
  await assert.rejects(importKeys(output, { state: empty, identityFile }, { say, print }), {
    code: 'KeyTaken',
  })
  assert.equal(secretOf('a-onion-key', 'news', empty), undefined)
})

test('a folder that tor had becomes a Secret, and lines for a manifest', async () => {
  const key = generateOnionKey()
  const { publicKey } = generateClientKey()
  const dir = torFolder('hs', key, { 'Alice Phone.auth': publicLine(publicKey), 'notes.txt': 'hello' })
  await importKeys(dir, { state, name: 'news-key', namespace: 'news' }, { say, print })
  assert.deepEqual(bytesOf(secretOf('news-key')), Buffer.from(key.secret))
  assert.equal(secretOf('news-key')?.metadata.labels, undefined)
  const text = printed.join('\n')
  assert.match(text, new RegExp(`${key.address}.*namespace news`))
  assert.match(text, /privateKeySecret:\n {4}name: news-key/)
  assert.match(text, new RegExp(`- name: alice-phone\n {8}publicKey: ${publicKey}`))
})

test('several folders of a tor at once, each by its own name', async () => {
  mkdirSync(path('tor'))
  const keys = ['one', 'two'].map((name) => {
    const key = generateOnionKey()
    torFolder(`tor/${name}`, key)
    return key
  })
  chmodSync(join(path('tor/one'), 'hs_ed25519_secret_key'), 0o644)
  await importKeys(path('tor'), { state, namespace: 'news' }, { say, print })
  assert.deepEqual(bytesOf(secretOf('one')), Buffer.from(keys[0]!.secret))
  assert.deepEqual(bytesOf(secretOf('two')), Buffer.from(keys[1]!.secret))
  assert.match(lines.join('\n'), /tor\/one\/hs_ed25519_secret_key can be read by others/)
  const found = await looked({ file: path('tor') })
  assert.deepEqual(
    found.map(({ problems }) => problems.length),
    [1, 0],
  )
})

test('as tor has them: folders of their owner alone', async () => {
  const key = served('web')
  await exportKeys([], { state, namespace: 'news', plainFolder: path('plain') }, say)
  const own = join(path('plain'), 'news', 'web-onion-key')
  assert.equal(statSync(own).mode & 0o777, 0o700)
  assert.equal(statSync(join(own, 'hs_ed25519_secret_key')).mode & 0o777, 0o600)
  assert.equal(readFileSync(join(own, 'hostname'), 'utf8'), `${key.address}.onion\n`)
})

test('bad input: each a line that says what to do, and nothing is touched', async () => {
  const key = served('web')
  const output = path('web.age')
  const seal = { state, namespace: 'news', recipient: [recipient], output }
  await exportKeys([], seal, say)
  const sealed = readFileSync(output)
  symlinkSync(path('nowhere'), path('link'))
  const otherIdentity = file('other', `${await generateIdentity()}\n`)
  const { hs_ed25519_public_key: publicKey } = writeOnionKeyFiles(generateOnionKey())
  const wrongPublic = torFolder('wrong-public', key)
  writeFileSync(join(wrongPublic, 'hs_ed25519_public_key'), publicKey)
  const wrongClient = torFolder('wrong-client', key, { 'a.auth': 'descriptor:x25519:short' })
  const sameClient = torFolder('same-client', key, {
    'a b.auth': publicLine(generateClientKey().publicKey),
    'A-B.auth': publicLine(generateClientKey().publicKey),
  })
  mkdirSync(path('v2'))
  file('v2/private_key', 'x')
  const bring = (from: string, more: object = {}) =>
    importKeys(from, { state, identityFile, ...more }, { say, print })
  const cases: [string, () => Promise<void>, RegExp][] = [
    ['a file that is there', () => exportKeys([], seal, say), /is there already/],
    ['a link', () => exportKeys([], { ...seal, output: path('link') }, say), /is there already/],
    ['nobody to open it', () => exportKeys([], { ...seal, recipient: [] }, say), /say who may open it/],
    ['no recipient', () => exportKeys([], { ...seal, recipient: ['age1x'] }, say), /is no recipient/],
    [
      'a secret as recipient',
      () => exportKeys([], { ...seal, recipientsFile: identityFile }, say),
      /this is an identity, a secret/,
    ],
    [
      'a short passphrase',
      () => exportKeys([], { ...seal, recipient: [], passphraseFile: file('short', 'short') }, say),
      /less than 12 characters/,
    ],
    [
      'no output',
      () => exportKeys([], { state, namespace: 'news', recipient: [recipient] }, say),
      /say where to/,
    ],
    ['a wrong name', () => exportKeys(['wen'], { ...seal, output: path('n') }, say), /did you mean 'web'/],
    ['another identity', () => bring(output, { identityFile: otherIdentity }), /for another identity/],
    ['no way to open it', () => bring(output, { identityFile: undefined }), /say how to open it/],
    ['a file that is not there', () => bring(path('none')), /none is not there/],
    ['no file of age', () => bring(file('text', 'hello')), /no file of age, or damaged/],
    ['a cut file', () => bring(file('cut', sealed.subarray(0, sealed.length - 20))), /damaged/],
    [
      'a turned bit',
      () =>
        bring(
          file(
            'bit',
            sealed.map((byte, at) => (at === 400 ? byte ^ 1 : byte)),
          ),
        ),
      /cannot be opened/,
    ],
    ['an empty folder', () => bring(path('state')), /has no hs_ed25519_secret_key/],
    ['an old onion', () => bring(path('v2')), /version 2 onion/],
    ['another public key', () => bring(wrongPublic, { name: 'k' }), /hs_ed25519_public_key does not belong/],
    ['a broken client', () => bring(wrongClient, { name: 'k' }), /a\.auth: the public key of a client/],
    ['two clients of a name', () => bring(sameClient, { name: 'k' }), /the same name as/],
    [
      'no name of a Secret',
      () => bring(wrongPublic, { name: 'No Name' }),
      /hs_ed25519_public_key|cannot be the name/,
    ],
  ]
  for (const [what, work, message] of cases) {
    await assert.rejects(work(), (error: Error) => {
      assert.match(error.message, message, what)
      assert.doesNotMatch(error.message, /AGE-SECRET-KEY-1[A-Z0-9]/, what)
      return true
    })
  }
  assert.deepEqual(readFileSync(output), sealed)
  assert.equal(existsSync(path('nowhere')), false)
  const left = within((store) => store.list(SECRET).map(({ metadata }) => metadata.name))
  assert.deepEqual(left, ['web-onion-key'])
})
