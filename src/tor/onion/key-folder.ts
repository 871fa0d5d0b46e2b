import { publicLine, readPublicKey } from './client-key.ts'
import { HOSTNAME_FILE, PUBLIC_KEY_FILE, readOnionKey, SECRET_KEY_FILE, writeOnionKeyFiles } from './files.ts'
import type { OnionKey } from './key.ts'

/** A HiddenServiceDir as tor has it: the key of an onion in three files, and a file for each client that may connect. */
export interface KeyFolder {
  key: OnionKey
  /** Empty: everybody may connect. */
  clients: FolderClient[]
}

export interface FolderClient {
  /** As an OnionService can name it. */
  name: string
  /** 52 characters of base32, upper case. */
  publicKey: string
}

export interface KeyFolderFault {
  file: string
  /** A sentence, with what to do; holds no key. */
  message: string
}

export type ReadKeyFolder = { ok: true; folder: KeyFolder } | ({ ok: false } & KeyFolderFault)

export const CLIENTS_FOLDER = 'authorized_clients'
const AUTH = '.auth'
const NAME_LIMIT = 63

/**
 * Reads the files of a folder. A file of a client that cannot be read refuses the whole: tor leaves such a client out, and
 * an onion that loses its last one is open to everybody.
 *
 * @param files by path below the folder; others than tor's are not looked at
 */
export function readKeyFolder(files: ReadonlyMap<string, Uint8Array>): ReadKeyFolder {
  const hostname = files.get(HOSTNAME_FILE)
  const read = readOnionKey({
    secretKey: files.get(SECRET_KEY_FILE),
    publicKey: files.get(PUBLIC_KEY_FILE),
    hostname: hostname === undefined ? undefined : Buffer.from(hostname).toString('utf8'),
  })
  if (!read.ok) return { ok: false, file: FILES[read.reason] ?? SECRET_KEY_FILE, message: read.message }
  const clients: FolderClient[] = []
  const names = new Map<string, string>()
  for (const [path, content] of files) {
    if (!path.startsWith(`${CLIENTS_FOLDER}/`) || !path.endsWith(AUTH)) continue
    const key = readPublicKey(Buffer.from(content.subarray(0, 1024)).toString('latin1'))
    if (!key.ok) {
      const message = `the public key of a client ${key.message}; put it right, or remove the file`
      return { ok: false, file: path, message }
    }
    const name = nameOf(path.slice(CLIENTS_FOLDER.length + 1, -AUTH.length))
    const other = names.get(name)
    if (name === '' || other !== undefined) {
      const why = name === '' ? 'no name of a client' : `the same name as ${other}`
      return { ok: false, file: path, message: `gives ${why}: rename it, with letters, digits and dashes` }
    }
    names.set(name, path)
    clients.push({ name, publicKey: key.key })
  }
  clients.sort((a, b) => (a.name < b.name ? -1 : 1))
  return { ok: true, folder: { key: read.key, clients } }
}

/** The files of a folder, by path below it. */
export function keyFolderFiles({ key, clients }: KeyFolder): Map<string, Buffer> {
  const files = new Map(
    Object.entries(writeOnionKeyFiles(key)).map(([name, content]) => [name, Buffer.from(content)]),
  )
  for (const { name, publicKey } of clients) {
    files.set(`${CLIENTS_FOLDER}/${name}${AUTH}`, Buffer.from(`${publicLine(publicKey)}\n`))
  }
  return files
}

/** Which file a fault is of, where it is not the secret key's. */
const FILES: Partial<Record<string, string>> = {
  PublicKeyMismatch: PUBLIC_KEY_FILE,
  HostnameMismatch: HOSTNAME_FILE,
}

/** tor takes any name of a file. */
function nameOf(file: string): string {
  return file
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, NAME_LIMIT)
    .replace(/^-+|-+$/g, '')
}
