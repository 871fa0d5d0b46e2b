import { createHash } from 'node:crypto'
import { ed25519 } from '@noble/curves/ed25519.js'
import { PosternError } from '../../core/errors.ts'
import { decodeBase32, encodeBase32 } from './base32.ts'

const VERSION = 3
const ADDRESS_LENGTH = 56
/** An onion of the second version, which tor no longer speaks, had 16 characters. */
const ADDRESS_LENGTH_V2 = 16
/** Longest host name of DNS, which bounds what is looked at. */
const TEXT_LIMIT = 253
const SUFFIX = '.onion'

export type OnionAddressFault =
  | 'NotAnOnion'
  | 'Version2'
  | 'WrongLength'
  | 'WrongVersion'
  | 'WrongChecksum'
  | 'InvalidKey'

export type ParsedOnionAddress =
  | { ok: true; address: string; publicKey: Uint8Array }
  | { ok: false; reason: OnionAddressFault; message: string }

/**
 * The address of an ed25519 public key of 32 bytes: 56 lower-case characters, without `.onion`
 * (rend-spec-v3, section 6 [ONIONADDRESS]). Throws `OnionPublicKeySize` for any other size.
 */
export function onionAddress(publicKey: Uint8Array): string {
  if (publicKey.length !== 32) {
    const message = `An onion's public key has 32 bytes, not ${publicKey.length}: pass the key without its file header`
    throw new PosternError('OnionPublicKeySize', message)
  }
  return encodeBase32(Buffer.concat([publicKey, checksum(publicKey), Buffer.of(VERSION)]))
}

/**
 * Reads an onion address as people write it: with or without `.onion`, in either case, with subdomains
 * (`www.<address>.onion`). Never throws; a refusal says what to do next. The public key is checked as tor checks
 * it before a connection: a point of the curve without a torsion part.
 */
export function parseOnionAddress(text: string): ParsedOnionAddress {
  const address = addressLabel(text)
  if (address === undefined) {
    return refuse(
      'NotAnOnion',
      'This is not an onion address: give the host name only, 56 characters of a-z and 2-7 followed by .onion, without scheme, port or path',
    )
  }
  if (address.length === ADDRESS_LENGTH_V2) {
    return refuse(
      'Version2',
      'This is an onion address of version 2 (16 characters), which tor stopped speaking in 2021: ask the service for its version 3 address of 56 characters',
    )
  }
  if (address.length !== ADDRESS_LENGTH) {
    return refuse(
      'WrongLength',
      `An onion address has 56 characters before .onion and this one has ${address.length}: copy it again in full`,
    )
  }
  // 56 characters of base32 are 35 bytes without a rest, so that decoding cannot fail here.
  const bytes = decodeBase32(address) ?? new Uint8Array(35)
  const publicKey = bytes.slice(0, 32)
  if (bytes[34] !== VERSION) {
    return refuse(
      'WrongVersion',
      `This onion address says version ${bytes[34]}, and only version 3 exists (its last character is a d): copy it again in full`,
    )
  }
  const expected = checksum(publicKey)
  if (bytes[32] !== expected[0] || bytes[33] !== expected[1]) {
    return refuse(
      'WrongChecksum',
      'The checksum of this onion address does not fit, so a character is mistyped: copy it again instead of typing it',
    )
  }
  if (!isValidPublicKey(publicKey)) {
    return refuse(
      'InvalidKey',
      'This onion address holds no valid ed25519 public key, so no service can answer at it: ask the service for its address again',
    )
  }
  return { ok: true, address, publicKey }
}

/** The lower-case label that holds the key, or undefined where the text cannot be an onion's host name. */
function addressLabel(text: string): string | undefined {
  const name = text.trim().toLowerCase()
  if (name.length > TEXT_LIMIT) return undefined
  const named = name.endsWith(SUFFIX)
  const labels = (named ? name.slice(0, -SUFFIX.length) : name).split('.')
  const address = labels.pop() ?? ''
  if (!/^[a-z2-7]+$/.test(address)) return undefined
  if (!labels.every((label) => /^[a-z0-9_-]{1,63}$/.test(label))) return undefined
  if (named) return address
  // Without the suffix only what has an onion's size is taken for one: `example.com` is not a short address.
  const sized =
    address.length === ADDRESS_LENGTH || (labels.length === 0 && /^.{16}$|^.{50,62}$/.test(address))
  return sized ? address : undefined
}

function checksum(publicKey: Uint8Array): Uint8Array {
  const hash = createHash('sha3-256')
  hash.update('.onion checksum').update(publicKey).update(Buffer.of(VERSION))
  return hash.digest().subarray(0, 2)
}

function isValidPublicKey(publicKey: Uint8Array): boolean {
  try {
    const point = ed25519.Point.fromBytes(publicKey)
    return !point.is0() && point.isTorsionFree()
  } catch {
    return false
  }
}

function refuse(reason: OnionAddressFault, message: string): ParsedOnionAddress {
  return { ok: false, reason, message }
}
