import { armor, Decrypter, Encrypter } from 'age-encryption'
import { messageOf, PosternError } from '../../core/errors.ts'
import { UsageError } from '../errors.ts'
import { readSome } from './files.ts'

/** Encryption of backups with age (age-encryption.org), so that the `age` command opens them as well. */

export interface SealOptions {
  recipient?: string[]
  recipientsFile?: string
  passphraseFile?: string
}

export interface OpenOptions {
  identityFile?: string
  passphraseFile?: string
}

const FILE_LIMIT = 64 * 1024
/** The encrypted archive is a little larger than what is in it. */
export const SEALED_LIMIT: number = 70 * 1024 * 1024
const ARMOR = '-----BEGIN AGE'
const PASSPHRASE_LEAST = 12

/** @throws UsageError */
export async function encrypter(options: SealOptions): Promise<Encrypter> {
  const { recipient = [], recipientsFile, passphraseFile } = options
  const seal = new Encrypter()
  if (passphraseFile !== undefined) {
    if (recipient.length > 0 || recipientsFile !== undefined)
      throw new UsageError('give either --passphrase-file or recipients: age takes no mixture of them')
    const passphrase = await readPassphrase(passphraseFile)
    if (passphrase.length < PASSPHRASE_LEAST)
      throw new UsageError(
        `the passphrase in ${passphraseFile} has less than ${PASSPHRASE_LEAST} characters: whoever finds the backup could guess it`,
      )
    seal.setPassphrase(passphrase)
    return seal
  }
  const named = recipientsFile === undefined ? [] : await readLines(recipientsFile)
  const all = [...recipient, ...named]
  if (all.length === 0)
    throw new UsageError(
      'say who may open it: --recipient age1…, --recipients-file FILE or --passphrase-file FILE',
    )
  for (const one of all) {
    try {
      seal.addRecipient(one)
    } catch (error) {
      if (one.startsWith('AGE-SECRET-KEY'))
        throw new UsageError(
          'a recipient is a public key, age1…, and this is an identity, a secret: take it away from where it stands now',
        )
      throw new UsageError(`${JSON.stringify(one.slice(0, 80))} is no recipient of age: ${messageOf(error)}`)
    }
  }
  return seal
}

/** @throws UsageError */
export async function decrypter(options: OpenOptions): Promise<Decrypter> {
  const { identityFile, passphraseFile } = options
  const open = new Decrypter()
  if ((identityFile === undefined) === (passphraseFile === undefined))
    throw new UsageError('say how to open it: --identity-file FILE or --passphrase-file FILE')
  if (passphraseFile !== undefined) {
    open.addPassphrase(await readPassphrase(passphraseFile))
    return open
  }
  const identities = await readLines(identityFile!)
  if (identities.length === 0) throw new UsageError(`${identityFile} holds no identity (AGE-SECRET-KEY-1…)`)
  for (const identity of identities) {
    try {
      open.addIdentity(identity)
    } catch {
      throw new UsageError(`${identityFile} holds a line that is no identity of age (AGE-SECRET-KEY-1…)`)
    }
  }
  return open
}

/**
 * Opens what age encrypted, armored or not.
 *
 * @throws PosternError `ArchiveLocked`
 */
export async function unlock(sealed: Uint8Array, open: Decrypter, path: string): Promise<Uint8Array> {
  const text = Buffer.from(sealed.subarray(0, ARMOR.length)).toString('latin1')
  try {
    const bytes = text === ARMOR ? armor.decode(Buffer.from(sealed).toString('latin1')) : sealed
    return await open.decrypt(bytes)
  } catch (error) {
    const why = messageOf(error)
    const remedy = /no identity matched|passphrase/i.test(why)
      ? 'it was encrypted for another identity or with another passphrase'
      : `it is no file of age, or damaged (${why})`
    throw new PosternError('ArchiveLocked', `${path} cannot be opened: ${remedy}`)
  }
}

async function readPassphrase(path: string): Promise<string> {
  const text = (await readSome(path, FILE_LIMIT)).toString('utf8').replace(/\r?\n[\s\S]*$/, '')
  if (text === '') throw new UsageError(`${path} holds no passphrase on its first line`)
  return text
}

/** Lines that are neither blank nor a comment. */
async function readLines(path: string): Promise<string[]> {
  const text = (await readSome(path, FILE_LIMIT)).toString('utf8')
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
}
