import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { PosternError } from '../../core/errors.ts'
import { decodeBase32, encodeBase32 } from './base32.ts'

/*
 * Keys of a private onion's visitors (rend-spec-v3, "client authorization"): x25519, of which the onion knows the public
 * half. tor writes both halves in base32 without padding in its files, and the private one in base64 on its control
 * port.
 */

export interface ClientKey {
  /** 32 bytes. A secret. */
  secret: Uint8Array
  /** 52 characters of base32, upper case. */
  publicKey: string
}

export type ReadClientKey<T> = { ok: true; key: T } | { ok: false; message: string }

/** Far above every form that is accepted. */
const TEXT_LIMIT = 512
const PKCS8: Buffer = Buffer.from('302e020100300506032b656e04220420', 'hex')

export function generateClientKey(): ClientKey {
  const { privateKey } = generateKeyPairSync('x25519')
  const { d } = privateKey.export({ format: 'jwk' })
  return clientKey(Buffer.from(d ?? '', 'base64url'))
}

/**
 * The pair of a private key of 32 bytes, which is copied.
 *
 * @throws PosternError ClientKeySize
 */
export function clientKey(secret: Uint8Array): ClientKey {
  if (secret.length !== 32) {
    throw new PosternError('ClientKeySize', `An x25519 key has 32 bytes, not ${secret.length}`)
  }
  const key = createPrivateKey({ key: Buffer.concat([PKCS8, secret]), format: 'der', type: 'pkcs8' })
  const { x } = createPublicKey(key).export({ format: 'jwk' })
  return {
    secret: Uint8Array.from(secret),
    publicKey: encodeBase32(Buffer.from(x ?? '', 'base64url')).toUpperCase(),
  }
}

/**
 * Reads a client's public key as people have it: base32 in either case, or a line of tor's `.auth` file
 * (`descriptor:x25519:<base32>`).
 */
export function readPublicKey(text: string): ReadClientKey<string> {
  if (text.length > TEXT_LIMIT) return no(`has more than ${TEXT_LIMIT} characters`)
  const bare = text.trim().replace(/^descriptor:x25519:/i, '')
  if (bare.includes(':')) {
    return no('is neither 52 characters of base32 nor a line descriptor:x25519:<base32>')
  }
  const bytes = decodeBase32(bare)
  if (bytes === undefined) return no('is not base32: only a-z and 2-7, without padding')
  if (bytes.length !== 32) return no(`has ${bare.length} characters, and an x25519 key has 52 in base32`)
  if (bytes.every((byte) => byte === 0)) return no("is all zero, which is nobody's key")
  return { ok: true, key: bare.toUpperCase() }
}

/**
 * Reads a client's private key as people have it: a line of tor's `.auth_private` file
 * (`<address>:descriptor:x25519:<base32>`), base32, base64, or the 32 bytes themselves. Messages hold no key.
 *
 * @param address that it should be for, without `.onion`: a line for another one is refused
 */
export function readPrivateKey(content: Uint8Array, address: string): ReadClientKey<ClientKey> {
  if (content.length === 32) return { ok: true, key: clientKey(content) }
  if (content.length > TEXT_LIMIT) return no(`has more than ${TEXT_LIMIT} bytes`)
  const text = Buffer.from(content).toString('latin1').trim()
  const line = /^(?:([^:]*):)?descriptor:x25519:([^:]*)$/i.exec(text)
  if (line?.[1] !== undefined && line[1].toLowerCase().replace(/\.onion$/, '') !== address) {
    return no('belongs to another onion than the one that is to be reached')
  }
  const bare = (line?.[2] ?? text).trim()
  const bytes = bare.length === 52 ? decodeBase32(bare) : bareBase64(bare)
  if (bytes === undefined || bytes.length !== 32) {
    return no('is no x25519 key: give the line of the .auth_private file, or the key in base32 or base64')
  }
  return { ok: true, key: clientKey(bytes) }
}

/** The line of a `.auth` file in `authorized_clients`. */
export function publicLine(publicKey: string): string {
  return `descriptor:x25519:${publicKey}`
}

/** The line of a `.auth_private` file in a client's ClientOnionAuthDir. A secret. */
export function privateLine({ secret }: ClientKey, address: string): string {
  return `${address}:descriptor:x25519:${encodeBase32(secret).toUpperCase()}`
}

function bareBase64(text: string): Buffer | undefined {
  const bare = text.replace(/=+$/, '')
  const bytes = Buffer.from(bare, 'base64')
  return bytes.toString('base64').replace(/=+$/, '') === bare ? bytes : undefined
}

function no(message: string): { ok: false; message: string } {
  return { ok: false, message }
}
