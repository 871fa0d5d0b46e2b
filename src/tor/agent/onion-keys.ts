import { createHash } from 'node:crypto'
import { codeOf, messageOf } from '../../core/errors.ts'
import { controlKey, deriveOnionKey } from '../onion/key.ts'

export type OnionKeyCheck =
  | { ok: true }
  | { ok: false; reason: 'KeyMissing' | 'KeyInvalid' | 'AddressMismatch'; message: string }

/** The onions' keys as they lie in the keys folder, each checked against the address that it should give. */
export class OnionKeys {
  #files: ReadonlyMap<string, Buffer> = new Map()
  /** By onion: the check of one key for one address costs a scalar multiplication. */
  readonly #checks = new Map<string, { of: string; check: OnionKeyCheck }>()

  use(files: ReadonlyMap<string, Buffer>): void {
    this.#files = files
    for (const name of this.#checks.keys()) if (!files.has(fileOf(name))) this.#checks.delete(name)
  }

  check(name: string, address: string): OnionKeyCheck {
    const secret = this.#files.get(fileOf(name))
    if (secret === undefined) {
      const message = `the keys hold no ${fileOf(name)}; it is published as soon as the key is there`
      return { ok: false, reason: 'KeyMissing', message }
    }
    const of = `${address}:${createHash('sha256').update(secret).digest('hex')}`
    const known = this.#checks.get(name)
    if (known?.of === of) return known.check
    const check = checkKey(secret, address)
    this.#checks.set(name, { of, check })
    return check
  }

  /** The 64 bytes of a key; only of one whose check was ok. */
  secret(name: string): Uint8Array {
    return this.#files.get(fileOf(name)) ?? new Uint8Array()
  }

  /** For ADD_ONION; only of a key whose check was ok. */
  controlKey(name: string): string {
    return controlKey(this.secret(name))
  }
}

function fileOf(name: string): string {
  return `${name}.key`
}

function checkKey(secret: Uint8Array, address: string): OnionKeyCheck {
  try {
    const derived = deriveOnionKey(secret).address
    return derived === address ? { ok: true } : mismatch(derived, address)
  } catch (error) {
    return { ok: false, reason: 'KeyInvalid', message: `${messageOf(error)} (${codeOf(error) ?? 'error'})` }
  }
}

/** A key that belongs to another address than the one that was promised to visitors. */
export function mismatch(derived: string, address: string): OnionKeyCheck & { ok: false } {
  const message = `the key belongs to ${derived}.onion, not to ${address}.onion, and is not published: restore the right key`
  return { ok: false, reason: 'AddressMismatch', message }
}
