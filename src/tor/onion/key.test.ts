import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { startTestTor } from '../control/testing-tor.ts'
import { onionAddress, parseOnionAddress } from './address.ts'
import { HOSTNAME_FILE, PUBLIC_KEY_FILE, readOnionKey, SECRET_KEY_FILE, writeOnionKeyFiles } from './files.ts'
import { controlKey, deriveOnionKey, generateOnionKey, isClamped } from './key.ts'

/** What has to be 32 bytes and is used up. */
const seed = fc.uint8Array({ minLength: 32, maxLength: 32 })

test('the public key is the one that OpenSSL derives from the same seed', () => {
  for (let i = 0; i < 5; i++) {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const plain = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32)
    const key = generateOnionKey(() => Uint8Array.from(plain))
    const expected = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
    assert.deepEqual(Buffer.from(key.publicKey), expected)
  }
})

test('a generated key is clamped, fits its address and is derived again from its secret', () => {
  fc.assert(
    fc.property(seed, (bytes) => {
      const prf = createHash('sha512').update(bytes).digest().subarray(32)
      const key = generateOnionKey(() => Uint8Array.from(bytes))
      assert.equal(key.secret.length, 64)
      assert.ok(isClamped(key.secret))
      assert.deepEqual(Buffer.from(key.secret.subarray(32)), prf)
      assert.equal(key.address, onionAddress(key.publicKey))
      assert.ok(parseOnionAddress(key.address).ok)
      assert.deepEqual(deriveOnionKey(key.secret), key)
    }),
    { numRuns: 25 },
  )
})

test('the largest and the smallest clamped scalar have a public key', () => {
  const least = new Uint8Array(64)
  least[31] = 0x40
  const most = new Uint8Array(64).fill(0xff)
  most[0] = 0xf8
  most[31] = 0x7f
  for (const secret of [least, most]) assert.equal(deriveOnionKey(secret).publicKey.length, 32)
})

test('two generated keys differ', () => {
  assert.notEqual(generateOnionKey().address, generateOnionKey().address)
})

test('what is no expanded key is refused by its code', () => {
  assert.throws(() => deriveOnionKey(new Uint8Array(32)), { code: 'OnionKeySize' })
  assert.throws(() => deriveOnionKey(new Uint8Array(64)), { code: 'OnionKeyNotClamped' })
  assert.throws(() => controlKey(new Uint8Array(32)), { code: 'OnionKeySize' })
  assert.throws(() => generateOnionKey(() => new Uint8Array(31)), { code: 'OnionSeedSize' })
})

test('tor: its own files are read, and written back byte for byte', async () => {
  await using tor = await startTestTor((directory) => [
    `HiddenServiceDir ${join(directory, 'onion')}`,
    'HiddenServicePort 80 127.0.0.1:1',
  ])
  const read = (name: string): Promise<Buffer> => readFile(join(tor.directory, 'onion', name))
  const secretKey = await read(SECRET_KEY_FILE)
  const publicKey = await read(PUBLIC_KEY_FILE)
  const hostname = (await read(HOSTNAME_FILE)).toString('utf8')
  const result = readOnionKey({ secretKey, publicKey, hostname })
  assert.ok(result.ok)
  assert.deepEqual(writeOnionKeyFiles(result.key), {
    hs_ed25519_secret_key: secretKey,
    hs_ed25519_public_key: publicKey,
    hostname,
  })
})

test('tor: gives generated keys the address that was derived, and generates keys that are read', async () => {
  await using tor = await startTestTor()
  await using client = await tor.client()
  for (let i = 0; i < 5; i++) {
    const key = generateOnionKey()
    const added = await client.addOnion({
      key: controlKey(key.secret),
      ports: [{ virtualPort: 80, target: '1' }],
    })
    assert.equal(added.serviceId, key.address)
  }
  const made = await client.command('ADD_ONION NEW:ED25519-V3 Port=80')
  const [address, secret] = made.lines.map((line) => line.text.replace(/^\w+=(ED25519-V3:)?/, ''))
  const result = readOnionKey({ secretKey: Buffer.from(secret ?? ''), hostname: address })
  assert.ok(result.ok)
  assert.equal(controlKey(result.key.secret), `ED25519-V3:${secret}`)
})
