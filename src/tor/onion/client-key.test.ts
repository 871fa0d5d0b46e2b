import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeBase32 } from './base32.ts'
import {
  clientKey,
  generateClientKey,
  privateLine,
  publicLine,
  readPrivateKey,
  readPublicKey,
} from './client-key.ts'

const ADDRESS = `${'a'.repeat(55)}d`

test('a pair of RFC 7748 (section 6.1) and a generated one', () => {
  const vector = clientKey(
    Buffer.from('5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb', 'hex'),
  )
  const expected = Buffer.from('de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f', 'hex')
  assert.equal(vector.publicKey, encodeBase32(expected).toUpperCase())
  const one = generateClientKey()
  assert.notDeepEqual(one.secret, generateClientKey().secret)
  assert.equal(clientKey(one.secret).publicKey, one.publicKey)
})

test('a public key in every form that people have', () => {
  const { publicKey } = generateClientKey()
  for (const form of [publicKey, publicKey.toLowerCase(), ` ${publicLine(publicKey)}\n`]) {
    assert.deepEqual(readPublicKey(form), { ok: true, key: publicKey })
  }
})

for (const [what, text, message] of [
  ['too short', 'ABC', /base32|characters/],
  ['padding', `${'A'.repeat(52)}====`, /base32/],
  ['a private line', `${ADDRESS}:descriptor:x25519:${'B'.repeat(51)}A`, /descriptor:x25519/],
  ['all zero', 'A'.repeat(52), /zero/],
  ['left-over bits', `${'A'.repeat(51)}B`, /base32/],
  ['hexadecimal', '0'.repeat(64), /base32/],
  ['a novel', 'A'.repeat(10_000), /512/],
] as const) {
  test(`refuses a public key: ${what}`, () => {
    const read = readPublicKey(text)
    assert.ok(!read.ok)
    assert.match(read.message, message)
  })
}

test('a private key in every form that people have', () => {
  const key = generateClientKey()
  const forms = [
    key.secret,
    Buffer.from(privateLine(key, ADDRESS)),
    Buffer.from(`${privateLine(key, ADDRESS)}\n`),
    Buffer.from(encodeBase32(key.secret)),
    Buffer.from(Buffer.from(key.secret).toString('base64')),
    Buffer.from(Buffer.from(key.secret).toString('base64').replace(/=+$/, '')),
  ]
  for (const form of forms) {
    const read = readPrivateKey(form, ADDRESS)
    assert.ok(read.ok, JSON.stringify(read))
    assert.equal(read.key.publicKey, key.publicKey)
  }
})

test('refuses what is no private key, and one for another onion, without a word of it', () => {
  const key = generateClientKey()
  const line = privateLine(key, `${'b'.repeat(55)}d`)
  const short = Buffer.from(Buffer.from(key.secret.subarray(1)).toString('base64'))
  for (const [content, message] of [
    [Buffer.from(line), /another onion/],
    [short, /x25519/],
    [Buffer.alloc(31), /x25519/],
    [Buffer.alloc(1000), /512/],
    [Buffer.from(''), /x25519/],
  ] as const) {
    const read = readPrivateKey(content, ADDRESS)
    assert.ok(!read.ok)
    assert.match(read.message, message)
    assert.ok(!read.message.includes(Buffer.from(key.secret).toString('base64').slice(0, 8)))
  }
})
