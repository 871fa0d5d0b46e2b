import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { onionAddress, parseOnionAddress } from './address.ts'
import { decodeBase32, encodeBase32 } from './base32.ts'
import { generateOnionKey } from './key.ts'

// The Tor Project's own site, published for years.
const KNOWN = '2gzyxa5ihm7nsggfxnu52rck2vv4rvmdlkiu3zzui5du4xyclen53wid'

function reasonOf(text: string): string {
  const parsed = parseOnionAddress(text)
  return parsed.ok ? 'ok' : parsed.reason
}

/** An address with a right checksum over any 32 bytes and version. */
function forge(publicKey: Uint8Array, version = 3): string {
  const sum = createHash('sha3-256')
    .update('.onion checksum')
    .update(publicKey)
    .update(Buffer.of(version))
    .digest()
  return encodeBase32(Buffer.concat([publicKey, sum.subarray(0, 2), Buffer.of(version)]))
}

test('base32 is the one of RFC 4648, in lower case and without padding', () => {
  const vectors = {
    '': '',
    f: 'my',
    fo: 'mzxq',
    foo: 'mzxw6',
    foob: 'mzxw6yq',
    fooba: 'mzxw6ytb',
    foobar: 'mzxw6ytboi',
  }
  for (const [plain, encoded] of Object.entries(vectors)) {
    assert.equal(encodeBase32(Buffer.from(plain)), encoded)
    assert.deepEqual(decodeBase32(encoded.toUpperCase()), new Uint8Array(Buffer.from(plain)))
  }
  for (const wrong of ['m', 'mzx', 'mz=', 'm0', 'mz', 'mzxw6y']) assert.equal(decodeBase32(wrong), undefined)
})

test('base32: whatever is encoded is decoded, and one text only names the bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
      assert.deepEqual(decodeBase32(encodeBase32(bytes)), bytes)
    }),
  )
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz234567'), maxLength: 20 }),
      (text) => {
        const bytes = decodeBase32(text)
        if (bytes !== undefined) assert.equal(encodeBase32(bytes), text)
      },
    ),
  )
})

test('a known address is read and written back', () => {
  const parsed = parseOnionAddress(KNOWN)
  assert.ok(parsed.ok)
  assert.equal(parsed.address, KNOWN)
  assert.equal(onionAddress(parsed.publicKey), KNOWN)
})

test('an address is read with and without suffix, in upper case, with subdomains and white space around', () => {
  const texts = [
    `${KNOWN}.onion`,
    KNOWN.toUpperCase(),
    `www.${KNOWN}.onion`,
    `a.b-c.${KNOWN}.ONION`,
    ` ${KNOWN}.onion\n`,
  ]
  for (const text of texts) {
    const parsed = parseOnionAddress(text)
    assert.ok(parsed.ok, text)
    assert.equal(parsed.address, KNOWN)
  }
})

test('each fault has its reason', () => {
  assert.equal(reasonOf(''), 'NotAnOnion')
  assert.equal(reasonOf('example.com'), 'NotAnOnion')
  assert.equal(reasonOf('localhost'), 'NotAnOnion')
  assert.equal(reasonOf('.onion'), 'NotAnOnion')
  assert.equal(reasonOf(`http://${KNOWN}.onion/`), 'NotAnOnion')
  assert.equal(reasonOf(`${KNOWN}.onion:80`), 'NotAnOnion')
  assert.equal(reasonOf(`..${KNOWN}.onion`), 'NotAnOnion')
  assert.equal(reasonOf(`${KNOWN.slice(0, 55)}1`), 'NotAnOnion')
  assert.equal(reasonOf(`${'a.'.repeat(200)}${KNOWN}.onion`), 'NotAnOnion')
  assert.equal(reasonOf('expyuzz4wqqyqhjn.onion'), 'Version2')
  assert.equal(reasonOf('expyuzz4wqqyqhjn'), 'Version2')
  assert.equal(reasonOf(KNOWN.slice(0, 55)), 'WrongLength')
  assert.equal(reasonOf(`${KNOWN.slice(0, 30)}.onion`), 'WrongLength')
  assert.equal(reasonOf(`${KNOWN}a.onion`), 'WrongLength')
  assert.equal(reasonOf(`a${KNOWN.slice(1)}`), 'WrongChecksum')
  assert.equal(reasonOf(`${KNOWN.slice(0, 55)}e`), 'WrongVersion')
  assert.equal(reasonOf(forge(generateOnionKey().publicKey, 4)), 'WrongVersion')
})

test('an address whose key is no point of the prime group is refused although its checksum fits', () => {
  // The neutral element, a point of order 2, and bytes that are no point.
  const one = Buffer.alloc(32)
  one[0] = 1
  const minusOne = Buffer.from('ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f', 'hex')
  const none = Buffer.alloc(32, 0xff)
  for (const key of [one, minusOne, none]) assert.equal(reasonOf(forge(key)), 'InvalidKey')
})

test('every mistyped character is noticed', () => {
  const place = fc.integer({ min: 0, max: 55 })
  const letter = fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz234567')
  fc.assert(
    fc.property(place, letter, (at, char) => {
      fc.pre(KNOWN[at] !== char)
      const parsed = parseOnionAddress(KNOWN.slice(0, at) + char + KNOWN.slice(at + 1))
      // A checksum of 16 bits misses one in 65536, but not one of these 1736 texts.
      assert.equal(parsed.ok, false)
    }),
  )
})

test('reading any text never throws, and a refusal says something', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.string().map((text) => `${text}.onion`),
      ),
      (text) => {
        const parsed = parseOnionAddress(text)
        if (!parsed.ok) assert.ok(parsed.message.length > 20)
      },
    ),
  )
})

test('a public key of another size is an error', () => {
  assert.throws(() => onionAddress(new Uint8Array(64)), { code: 'OnionPublicKeySize' })
})
