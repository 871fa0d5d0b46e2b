import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { codeOf, messageOf } from '../../core/errors.ts'
import { HOSTNAME_FILE, PUBLIC_KEY_FILE, SECRET_KEY_FILE } from '../../tor/onion/files.ts'
import { CLIENTS_FOLDER } from '../../tor/onion/key-folder.ts'
import { UsageError } from '../errors.ts'

/** Files of keys, on disk. */

const KEY_FILE_LIMIT = 4096
const CLIENTS_LIMIT = 1000

/**
 * Makes a file that nobody else can read. One that is there is left alone, and no link is followed.
 *
 * @throws UsageError
 */
export async function writeNew(path: string, content: Uint8Array): Promise<void> {
  try {
    const file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
    try {
      await file.writeFile(content)
      await file.sync()
    } finally {
      await file.close()
    }
  } catch (error) {
    if (codeOf(error) === 'EEXIST')
      throw new UsageError(`${path} is there already: name a file that is not, or remove it`)
    throw new UsageError(`${path} cannot be written: ${messageOf(error)}`)
  }
}

/** Makes a folder, which must not be there, as tor wants it: nobody else's. @throws UsageError */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (error) {
    if (codeOf(error) === 'EEXIST')
      throw new UsageError(`${path} is there already: name a folder that is not`)
    throw new UsageError(`${path} cannot be made: ${messageOf(error)}`)
  }
}

/**
 * Reads a file of at most so many bytes; `-` is standard input.
 *
 * @throws UsageError
 */
export async function readSome(path: string, limit: number): Promise<Buffer> {
  try {
    if (path === '-') return await readStream(process.stdin, limit)
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      return await readStream(file.createReadStream({ autoClose: false }), limit)
    } finally {
      await file.close()
    }
  } catch (error) {
    if (error instanceof UsageError) throw error
    const why = codeOf(error) === 'ENOENT' ? 'is not there' : `cannot be read: ${messageOf(error)}`
    throw new UsageError(`${path} ${why}: name a file that you can read`)
  }
}

async function readStream(stream: AsyncIterable<Buffer | string>, limit: number): Promise<Buffer> {
  const parts: Buffer[] = []
  let size = 0
  for await (const chunk of stream) {
    const part = Buffer.from(chunk as string)
    size += part.length
    if (size > limit) throw new UsageError(`more than ${limit} bytes: that is not what is wanted here`)
    parts.push(part)
  }
  return Buffer.concat(parts)
}

/** What tor keeps of an onion in a folder, by path below it. */
export interface FoundFolder {
  path: string
  files: Map<string, Uint8Array>
  /** Somebody else may read the secret key. */
  open: boolean
}

/**
 * Finds the folder of an onion, or a folder of such folders, one level down.
 *
 * @throws UsageError
 */
export async function findFolders(path: string): Promise<FoundFolder[]> {
  const names = await list(path)
  if (names.includes(SECRET_KEY_FILE)) return [await readFolder(path)]
  const found: FoundFolder[] = []
  for (const name of names) {
    const below = join(path, name)
    const stats = await lstat(below)
    if (!stats.isDirectory()) continue
    if ((await list(below)).includes(SECRET_KEY_FILE)) found.push(await readFolder(below))
  }
  if (found.length > 0) return found
  const old = names.includes('private_key') ? '; it holds a version 2 onion, which tor has given up' : ''
  throw new UsageError(
    `${path} has no ${SECRET_KEY_FILE}, nor has a folder in it${old}: name the HiddenServiceDir of an onion`,
  )
}

async function readFolder(path: string): Promise<FoundFolder> {
  const files = new Map<string, Uint8Array>()
  const names = await list(path)
  for (const name of [SECRET_KEY_FILE, PUBLIC_KEY_FILE, HOSTNAME_FILE]) {
    if (names.includes(name)) files.set(name, await readSome(join(path, name), KEY_FILE_LIMIT))
  }
  if (names.includes(CLIENTS_FOLDER)) {
    const clients = await list(join(path, CLIENTS_FOLDER))
    if (clients.length > CLIENTS_LIMIT)
      throw new UsageError(`${join(path, CLIENTS_FOLDER)} has more than ${CLIENTS_LIMIT} files`)
    for (const name of clients) {
      if (!name.endsWith('.auth')) continue
      files.set(`${CLIENTS_FOLDER}/${name}`, await readSome(join(path, CLIENTS_FOLDER, name), KEY_FILE_LIMIT))
    }
  }
  const { mode } = await lstat(join(path, SECRET_KEY_FILE))
  return { path, files, open: (mode & 0o077) !== 0 }
}

async function list(path: string): Promise<string[]> {
  try {
    return (await readdir(path)).sort()
  } catch (error) {
    const why =
      codeOf(error) === 'ENOENT'
        ? 'is not there'
        : codeOf(error) === 'ENOTDIR'
          ? 'is no folder'
          : `cannot be read: ${messageOf(error)}`
    throw new UsageError(`${path} ${why}: name the HiddenServiceDir of an onion`)
  }
}

/** The last part of a path, for a Secret's name. */
export function folderName(path: string): string {
  return basename(join(process.cwd(), path))
}
