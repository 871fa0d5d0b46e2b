import { createHash, randomBytes } from 'node:crypto'
import { ed25519 } from '@noble/curves/ed25519.js'
import { PosternError } from '../../core/errors.ts'
import { onionAddress } from './address.ts'

export interface OnionKey {
  /** 64 bytes, expanded: clamped scalar (little endian), then the half that signatures are salted with. */
  secret: Uint8Array
  /** 32 bytes. */
  publicKey: Uint8Array
  /** 56 characters, without `.onion`. */
  address: string
}

/**
 * A new onion key. `random` gives n unguessable bytes, which are wiped after use; node's generator by default,
 * another one for tests only.
 */
export function generateOnionKey(random: (n: number) => Uint8Array = randomBytes): OnionKey {
  const seed = random(32)
  if (seed.length !== 32) {
    throw new PosternError(
      'OnionSeedSize',
      'The random source must return exactly the 32 bytes it is asked for',
    )
  }
  // RFC 8032, section 5.1.5: tor keeps the expanded form and throws the seed away.
  const secret = new Uint8Array(createHash('sha512').update(seed).digest())
  secret[0] = (secret[0] ?? 0) & 248
  secret[31] = ((secret[31] ?? 0) & 127) | 64
  seed.fill(0)
  return deriveOnionKey(secret)
}

/** Whether the scalar has the form that ed25519 demands. tor itself takes any 64 bytes, under a foreign address. */
export function isClamped(secret: Uint8Array): boolean {
  return ((secret[0] ?? 0) & 7) === 0 && ((secret[31] ?? 0) & 0xc0) === 0x40
}

/**
 * Public key and address of an expanded secret of 64 bytes. Throws `OnionKeySize` for another size and
 * `OnionKeyNotClamped` for bytes that are no expanded ed25519 key. The secret is copied.
 */
export function deriveOnionKey(secret: Uint8Array): OnionKey {
  checkSize(secret)
  if (!isClamped(secret)) {
    const message = 'These 64 bytes are no expanded ed25519 secret key: its scalar is not clamped'
    throw new PosternError('OnionKeyNotClamped', message)
  }
  const scalar = BigInt(`0x${Buffer.from(secret.subarray(0, 32)).reverse().toString('hex')}`)
  // The base point has the order L, so reducing changes nothing; a clamped scalar is never a multiple of L, since
  // L is odd, the scalar a multiple of 8 and below 8 L.
  const publicKey = ed25519.Point.BASE.multiply(scalar % ed25519.Point.Fn.ORDER).toBytes()
  return { secret: Uint8Array.from(secret), publicKey, address: onionAddress(publicKey) }
}

/** The key as ADD_ONION takes it (control-spec 3.27): `ED25519-V3:<base64>`. A secret, never to be logged. */
export function controlKey(secret: Uint8Array): string {
  checkSize(secret)
  return `ED25519-V3:${Buffer.from(secret).toString('base64')}`
}

function checkSize(secret: Uint8Array): void {
  if (secret.length === 64) return
  const message = `An expanded onion key has 64 bytes, not ${secret.length}: a seed of 32 bytes must be expanded first`
  throw new PosternError('OnionKeySize', message)
}
