import { ed25519 } from '@noble/curves/ed25519.js'
import { parseOnionAddress } from './address.ts'
import { deriveOnionKey, isClamped, type OnionKey } from './key.ts'

/** The files of a HiddenServiceDir, as tor and mkp224o write them. */
export const SECRET_KEY_FILE = 'hs_ed25519_secret_key'
export const PUBLIC_KEY_FILE = 'hs_ed25519_public_key'
export const HOSTNAME_FILE = 'hostname'

const SECRET_HEADER: Buffer = Buffer.from('== ed25519v1-secret: type0 ==\0\0\0', 'latin1')
const PUBLIC_HEADER: Buffer = Buffer.from('== ed25519v1-public: type0 ==\0\0\0', 'latin1')
/** Far above any form of a key that is accepted, with room for line breaks. */
const FILE_LIMIT = 4096

export type OnionKeyFault =
  | 'KeyMissing'
  | 'KeyWrongSize'
  | 'KeyIsSeed'
  | 'KeyWrongHeader'
  | 'KeyNotClamped'
  | 'PublicKeyMismatch'
  | 'HostnameMismatch'

export interface OnionKeySources {
  secretKey?: Uint8Array | undefined
  publicKey?: Uint8Array | undefined
  hostname?: string | undefined
}

export interface OnionKeyFiles {
  /** 96 bytes: header and expanded secret. */
  hs_ed25519_secret_key: Buffer
  /** 64 bytes: header and public key. */
  hs_ed25519_public_key: Buffer
  /** Address with `.onion` and a line feed. */
  hostname: string
}

type Refusal = { ok: false; reason: OnionKeyFault; message: string }
export type ReadOnionKey = { ok: true; key: OnionKey } | Refusal

const SEED_REMEDY =
  'tor cannot use it: let tor or mkp224o write the key and give its file hs_ed25519_secret_key (96 bytes)'

/**
 * Reads an onion key as users bring it: tor's file of 96 bytes, its last 64 bytes alone, or base64 of either
 * (white space is ignored). The public key and the hostname are optional; where they are given they must fit,
 * since tor publishes whatever 64 bytes it is given under some address. Never throws; messages hold no key.
 */
export function readOnionKey(files: OnionKeySources): ReadOnionKey {
  const secret = expandedSecret(files.secretKey)
  if (!(secret instanceof Uint8Array)) return secret
  const given = files.publicKey === undefined ? undefined : publicKeyOf(files.publicKey)
  const key = isClamped(secret) ? deriveOnionKey(secret) : undefined
  // A public key that fits tells enough; what follows costs as much again, for thousands of keys at the start.
  const fits = key !== undefined && given?.equals(key.publicKey) === true
  if (!fits && isSeedAndPublic(secret)) {
    return refuse(
      'KeyIsSeed',
      `This key is a seed followed by its public key (libsodium's form); ${SEED_REMEDY}`,
    )
  }
  if (key === undefined) {
    return refuse(
      'KeyNotClamped',
      `These 64 bytes are no expanded ed25519 secret key, so tor would publish another address: give the unchanged file ${SECRET_KEY_FILE}`,
    )
  }
  if (files.publicKey !== undefined && !fits) {
    return refuse(
      'PublicKeyMismatch',
      `${PUBLIC_KEY_FILE} does not belong to the secret key: give the files of one and the same onion, or leave it out`,
    )
  }
  if (files.hostname !== undefined && files.hostname.trim() !== `${key.address}.onion`) {
    const given = parseOnionAddress(files.hostname.slice(0, FILE_LIMIT))
    if (!given.ok || given.address !== key.address) {
      return refuse(
        'HostnameMismatch',
        `The secret key makes ${key.address}.onion, which is not what ${HOSTNAME_FILE} says: give the files of one and the same onion, or leave it out`,
      )
    }
  }
  return { ok: true, key }
}

/** The three files of a HiddenServiceDir, byte for byte as tor writes them. */
export function writeOnionKeyFiles(key: OnionKey): OnionKeyFiles {
  return {
    hs_ed25519_secret_key: Buffer.concat([SECRET_HEADER, key.secret]),
    hs_ed25519_public_key: Buffer.concat([PUBLIC_HEADER, key.publicKey]),
    hostname: `${key.address}.onion\n`,
  }
}

/** The 64 bytes of the secret, or why there are none. Clamping is not looked at. */
function expandedSecret(given: Uint8Array | undefined): Uint8Array | Refusal {
  if (given === undefined || given.length === 0) {
    return refuse(
      'KeyMissing',
      `There is no ${SECRET_KEY_FILE}: add the file that tor or mkp224o wrote (96 bytes)`,
    )
  }
  if (given.length > FILE_LIMIT) return wrongSize(`has ${given.length} bytes`)
  const raw = Buffer.from(given)
  const text = printableText(raw)
  if (text === undefined) return binarySecret(raw, 'bytes')
  if (text === '') return refuse('KeyMissing', `${SECRET_KEY_FILE} holds only white space: put the key in`)
  if (text.startsWith('-----BEGIN')) {
    return refuse(
      'KeyWrongHeader',
      `This key is PEM, the form of OpenSSL and of version 2 onions; ${SEED_REMEDY}`,
    )
  }
  if (text.startsWith('ED25519-V3:')) {
    return refuse(
      'KeyWrongHeader',
      'This is the control port\'s form of a key: keep only what follows "ED25519-V3:"',
    )
  }
  if (/^[0-9a-fA-F]{64}$/.test(text)) {
    return refuse('KeyIsSeed', `This is a seed of 32 bytes in hexadecimal; ${SEED_REMEDY}`)
  }
  const decoded = decodeBase64(text)
  return decoded === undefined
    ? wrongSize('is text that is no base64')
    : binarySecret(decoded, 'bytes after base64')
}

/** The 64 bytes of a secret key in any form that {@link readOnionKey} takes, unchecked; undefined where it is none. */
export function readExpandedSecret(given: Uint8Array | undefined): Uint8Array | undefined {
  const secret = expandedSecret(given)
  return secret instanceof Uint8Array ? secret : undefined
}

function binarySecret(bytes: Buffer, unit: string): Uint8Array | Refusal {
  if (bytes.length === 64) {
    // The public file has the same size as a bare secret and is easily taken for it.
    if (!bytes.subarray(0, 32).equals(PUBLIC_HEADER)) return bytes
    return refuse('KeyWrongHeader', `This is the public key: give ${SECRET_KEY_FILE}, which has 96 bytes`)
  }
  if (bytes.length === 96) {
    if (bytes.subarray(0, 32).equals(SECRET_HEADER)) return bytes.subarray(32)
    return refuse(
      'KeyWrongHeader',
      `This file of 96 bytes does not begin with "== ed25519v1-secret: type0 ==": give the unchanged file ${SECRET_KEY_FILE}`,
    )
  }
  if (bytes.length === 32) return refuse('KeyIsSeed', `This is a seed of 32 bytes; ${SEED_REMEDY}`)
  return wrongSize(`has ${bytes.length} ${unit}`)
}

function publicKeyOf(given: Uint8Array): Buffer | undefined {
  if (given.length > FILE_LIMIT) return undefined
  const raw = Buffer.from(given)
  const text = printableText(raw)
  const bytes = text === undefined ? raw : decodeBase64(text)
  if (bytes?.length === 64 && bytes.subarray(0, 32).equals(PUBLIC_HEADER)) return bytes.subarray(32)
  return bytes?.length === 32 ? bytes : undefined
}

/** Whether a key of libsodium's or Go's form was given, whose first half is a seed and not a scalar. */
function isSeedAndPublic(secret: Uint8Array): boolean {
  const expected = ed25519.getPublicKey(secret.subarray(0, 32))
  return Buffer.from(expected).equals(secret.subarray(32))
}

/** The text without white space when every byte is printable ASCII, which 32 random bytes practically never are. */
function printableText(bytes: Buffer): string | undefined {
  const text = bytes.toString('latin1')
  return /^[\x20-\x7e\t\r\n]*$/.test(text) ? text.replace(/\s+/g, '') : undefined
}

/** Only canonical base64, padded or not: node itself skips what it does not know. */
function decodeBase64(text: string): Buffer | undefined {
  const bare = text.replace(/={1,2}$/, '')
  const bytes = Buffer.from(bare, 'base64')
  return bytes.toString('base64').replace(/=+$/, '') === bare ? bytes : undefined
}

function wrongSize(what: string): Refusal {
  return refuse(
    'KeyWrongSize',
    `This key ${what}, and an onion's secret key has 96 (tor's file) or 64 bytes: give the unchanged file ${SECRET_KEY_FILE} or base64 of it`,
  )
}

function refuse(reason: OnionKeyFault, message: string): Refusal {
  return { ok: false, reason, message }
}
