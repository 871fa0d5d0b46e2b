import { X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'
import { codeOf, PosternError } from '../../core/errors.ts'
import type { Credential } from './credentials.ts'
import { readPem } from './pem.ts'
import type { ConnectionSettings } from './settings.ts'

/** PEM texts. */
interface Material {
  ca?: string
  cert?: string
  key?: string
}

/** Milliseconds between two looks at the files. */
const FILE_LIFE = 5_000

/**
 * Certificate authority and client certificate as they are now: files are read again, and a new context is made only
 * when what they hold has changed. A half-done rotation (a file missing, a key that is not the certificate's) leaves
 * the old one in use until the files fit again.
 */
export class TlsSource {
  readonly #settings: ConnectionSettings
  readonly #now: () => number
  #files: Material | undefined
  #readAt = 0
  #tried: Material | undefined
  #context: SecureContext | undefined

  constructor(settings: ConnectionSettings, now: () => number) {
    this.#settings = settings
    this.#now = now
  }

  /** Makes the next call look at the files, however short ago that was. */
  forget(): void {
    this.#readAt = Number.NEGATIVE_INFINITY
  }

  /**
   * The same object as long as nothing changed.
   *
   * @throws PosternError `KubeconfigInvalid` when there never was a usable one
   */
  context(credential: Credential): SecureContext {
    const wanted = { ...this.#material(), ...credential.certificate }
    if (this.#context !== undefined && same(wanted, this.#tried)) return this.#context
    this.#tried = wanted
    try {
      this.#context = secureContext(wanted, this.#settings.source)
    } catch (error) {
      if (this.#context === undefined) throw error
    }
    return this.#context
  }

  #material(): Material {
    if (this.#files !== undefined && this.#now() - this.#readAt < FILE_LIFE) return this.#files
    this.#readAt = this.#now()
    const { tls, user } = this.#settings
    try {
      this.#files = {
        ...(tls.ca === undefined ? {} : { ca: readPem(tls.ca, 'CERTIFICATE') }),
        ...(user.certificate === undefined ? {} : { cert: readPem(user.certificate, 'CERTIFICATE') }),
        ...(user.key === undefined ? {} : { key: readPem(user.key, 'PRIVATE KEY') }),
      }
    } catch (error) {
      if (this.#files === undefined) throw error
    }
    return this.#files
  }
}

function secureContext(material: Material, source: string): SecureContext {
  try {
    // The context itself takes a broken authority without a word, and then trusts nobody.
    if (material.ca !== undefined) new X509Certificate(material.ca)
    return createSecureContext(material)
  } catch (error) {
    throw new PosternError(
      'KubeconfigInvalid',
      `${source}: the certificate authority, client certificate or client key cannot be used (${codeOf(error) ?? 'unreadable'}): check that they are whole, without passphrase, and that the key is the certificate's`,
      { cause: error },
    )
  }
}

function same(a: Material, b: Material | undefined): boolean {
  return b !== undefined && a.ca === b.ca && a.cert === b.cert && a.key === b.key
}
