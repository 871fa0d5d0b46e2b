import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { type OnionKeySources, readOnionKey, writeOnionKeyFiles } from './files.ts'
import { generateOnionKey } from './key.ts'

const key = generateOnionKey()
const files = writeOnionKeyFiles(key)
const other = writeOnionKeyFiles(generateOnionKey())
const file = files.hs_ed25519_secret_key
const bare = Buffer.from(key.secret)
const wrapped = file.toString('base64').replace(/.{40}/g, '$&\r\n')

function reasonOf(sources: OnionKeySources): string {
  const result = readOnionKey(sources)
  return result.ok ? 'ok' : result.reason
}

test('the files have the form of tor', () => {
  assert.equal(file.length, 96)
  assert.equal(file.subarray(0, 32).toString('latin1'), '== ed25519v1-secret: type0 ==\0\0\0')
  assert.equal(files.hs_ed25519_public_key.length, 64)
  assert.equal(
    files.hs_ed25519_public_key.subarray(0, 32).toString('latin1'),
    '== ed25519v1-public: type0 ==\0\0\0',
  )
  assert.equal(files.hostname, `${key.address}.onion\n`)
  assert.equal(files.hostname.length, 63)
})

test('a secret key is read in each of its forms', () => {
  const forms: Record<string, Uint8Array> = {
    file,
    'plain array': Uint8Array.from(file),
    bare,
    'base64 of the file': Buffer.from(file.toString('base64')),
    'base64 of the file on several lines': Buffer.from(` ${wrapped}\n\n`),
    'base64 of the bare key': Buffer.from(`${bare.toString('base64')}\n`),
    'base64 without padding': Buffer.from(bare.toString('base64').replace(/=+$/, '')),
  }
  for (const [name, secretKey] of Object.entries(forms)) {
    const result = readOnionKey({ secretKey })
    assert.ok(result.ok, name)
    assert.deepEqual(result.key, key, name)
  }
})

test('a public key and a hostname that fit are fine in each of their forms', () => {
  const stored = files.hs_ed25519_public_key
  for (const publicKey of [stored, key.publicKey, Buffer.from(`${stored.toString('base64')}\n`)]) {
    assert.equal(reasonOf({ secretKey: file, publicKey }), 'ok')
  }
  for (const hostname of [files.hostname, key.address, `${key.address.toUpperCase()}.ONION`]) {
    assert.equal(reasonOf({ secretKey: file, hostname }), 'ok')
  }
})

test('each refusal has its reason', () => {
  const seedAndPublic = generateKeyPairSync('ed25519')
  const seed = seedAndPublic.privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32)
  const point = seedAndPublic.publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  const pem = seedAndPublic.privateKey.export({ format: 'pem', type: 'pkcs8' })
  const cases: [string, Uint8Array | undefined][] = [
    ['KeyMissing', undefined],
    ['KeyMissing', new Uint8Array(0)],
    ['KeyMissing', Buffer.from(' \n')],
    ['KeyIsSeed', Buffer.alloc(32, 0xa7)],
    ['KeyIsSeed', seed],
    ['KeyIsSeed', Buffer.from(`${seed.toString('base64')}\n`)],
    ['KeyIsSeed', Buffer.from(seed.toString('hex'))],
    ['KeyIsSeed', Buffer.concat([seed, point])],
    ['KeyWrongSize', file.subarray(0, 95)],
    ['KeyWrongSize', Buffer.concat([file, Buffer.of(0)])],
    ['KeyWrongSize', bare.subarray(1)],
    ['KeyWrongSize', Buffer.alloc(5000, 0xa7)],
    ['KeyWrongSize', Buffer.from('my secret!')],
    ['KeyWrongSize', Buffer.from('bm90IGEga2V5')],
    ['KeyWrongHeader', Buffer.concat([Buffer.alloc(32), bare])],
    ['KeyWrongHeader', Buffer.concat([files.hs_ed25519_public_key.subarray(0, 32), bare])],
    ['KeyWrongHeader', files.hs_ed25519_public_key],
    ['KeyWrongHeader', Buffer.from(`ED25519-V3:${bare.toString('base64')}`)],
    ['KeyWrongHeader', Buffer.from(pem)],
    ['KeyNotClamped', Buffer.alloc(64)],
    ['KeyNotClamped', clampedOtherwise(0, 1)],
    ['KeyNotClamped', clampedOtherwise(0, 4)],
    ['KeyNotClamped', clampedOtherwise(31, 0x80)],
    ['KeyNotClamped', clampedOtherwise(31, 0x40)],
  ]
  for (const [reason, secretKey] of cases)
    assert.equal(reasonOf({ secretKey }), reason, `${secretKey?.length}`)
  for (const publicKey of [
    other.hs_ed25519_public_key,
    new Uint8Array(0),
    Buffer.alloc(9000),
    Buffer.from('x'),
  ]) {
    assert.equal(reasonOf({ secretKey: file, publicKey }), 'PublicKeyMismatch')
  }
  for (const hostname of [other.hostname, '', 'example.com', 'expyuzz4wqqyqhjn.onion\n']) {
    assert.equal(reasonOf({ secretKey: file, hostname }), 'HostnameMismatch')
  }
})

/** The bare key with bits of one byte turned over. */
function clampedOtherwise(at: number, bits: number): Buffer {
  const changed = Buffer.from(bare)
  changed[at] = (changed[at] ?? 0) ^ bits
  return changed
}

test('the checks come in their order', () => {
  const wrong = { publicKey: other.hs_ed25519_public_key, hostname: other.hostname }
  assert.equal(reasonOf({ secretKey: Buffer.alloc(32), ...wrong }), 'KeyIsSeed')
  assert.equal(reasonOf({ secretKey: Buffer.alloc(64), ...wrong }), 'KeyNotClamped')
  assert.equal(reasonOf({ secretKey: file, ...wrong }), 'PublicKeyMismatch')
})

test('any bytes give a key or a refusal without the bytes in it', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 130 }),
    fc.uint8Array({ minLength: 64, maxLength: 64 }),
    fc.string({ minLength: 20, maxLength: 130 }).map((text) => Buffer.from(text)),
  )
  fc.assert(
    fc.property(bytes, (secretKey) => {
      const result = readOnionKey({ secretKey, publicKey: secretKey, hostname: 'x' })
      assert.equal(result.ok, false)
      if (result.ok || secretKey.length < 20) return
      for (const form of ['base64', 'hex', 'latin1'] as const) {
        assert.ok(!result.message.includes(Buffer.from(secretKey).toString(form)))
      }
    }),
  )
})

test('whatever is written is read', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (seed) => {
      const made = generateOnionKey(() => seed)
      const written = writeOnionKeyFiles(made)
      const result = readOnionKey({
        secretKey: written.hs_ed25519_secret_key,
        publicKey: written.hs_ed25519_public_key,
        hostname: written.hostname,
      })
      assert.ok(result.ok)
      assert.deepEqual(result.key, made)
    }),
    { numRuns: 25 },
  )
})
