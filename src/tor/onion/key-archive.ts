import { packTar, unpackTar } from 'modern-tar'
import { z } from 'zod'
import { objectName } from '../../cluster/api-kind.ts'
import { messageOf, PosternError } from '../../core/errors.ts'
import { privateLine, readPrivateKey } from './client-key.ts'
import { type KeyFolder, keyFolderFiles, readKeyFolder } from './key-folder.ts'

/** A key as a backup has it. */
export interface ArchivedKey extends KeyFolder {
  namespace: string
  /** Name of the Secret. */
  secret: string
  /** Name of the OnionService whose key it is, or was. */
  onion: string
  /** Set: it is a former key, served until then (RFC 3339). */
  until?: string
  /** Private keys of 32 bytes of clients whose pairs were made here, by the client's name. */
  clientKeys: ReadonlyMap<string, Uint8Array>
}

/** Of the archive, unpacked: thousands of onions fit. */
export const ARCHIVE_LIMIT: number = 64 * 1024 * 1024
const KEYS_LIMIT = 20_000
const MANIFEST = 'postern-keys.json'
const CLIENT_KEYS = 'client_keys'
/** The same keys give the same bytes but for the manifest's date. */
const EPOCH = new Date(0)

const manifestSchema = z.object({
  version: z.literal(1),
  created: z.string().max(64),
  keys: z
    .array(
      z.object({
        namespace: objectName(63),
        secret: objectName(),
        onion: objectName(),
        until: z.string().max(64).optional(),
        hostname: z.string().max(62),
      }),
    )
    .max(KEYS_LIMIT),
})

type ManifestKey = z.infer<typeof manifestSchema>['keys'][number]

/**
 * A tar of one folder a key, `NAMESPACE/SECRET/` as tor's HiddenServiceDir, and a manifest that says what they are for.
 *
 * @param created milliseconds since the epoch
 */
export async function packKeys(keys: readonly ArchivedKey[], created: number): Promise<Uint8Array> {
  const entries: { header: { name: string; size: number; mode: number; mtime: Date }; body: Buffer }[] = []
  const add = (name: string, body: Buffer, mtime: Date): void => {
    entries.push({ header: { name, size: body.length, mode: 0o600, mtime }, body })
  }
  const manifest = {
    version: 1,
    created: new Date(created).toISOString(),
    keys: keys.map(({ namespace, secret, onion, until, key }) => ({
      namespace,
      secret,
      onion,
      ...(until === undefined ? {} : { until }),
      hostname: `${key.address}.onion`,
    })),
  }
  add(MANIFEST, Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`), new Date(created))
  for (const one of keys) {
    for (const [path, content] of filesOf(one)) add(`${one.namespace}/${one.secret}/${path}`, content, EPOCH)
  }
  return packTar(entries)
}

/** Files of one key, by path below its folder. */
export function filesOf(one: ArchivedKey): Map<string, Buffer> {
  const files = keyFolderFiles(one)
  for (const [name, secret] of one.clientKeys) {
    const line = privateLine({ secret, publicKey: '' }, one.key.address)
    files.set(`${CLIENT_KEYS}/${name}.auth_private`, Buffer.from(`${line}\n`))
  }
  return files
}

/**
 * Reads what {@link packKeys} made, whole or not at all: every key is looked at.
 *
 * @throws PosternError `ArchiveInvalid`, which names the entry
 */
export async function unpackKeys(archive: Uint8Array): Promise<ArchivedKey[]> {
  const files = await unpack(archive)
  const text = files.get(MANIFEST)
  if (text === undefined) throw invalid(MANIFEST, 'is not in it: it is no backup of keys')
  files.delete(MANIFEST)
  const folders = byFolder(files)
  const keys = readManifest(text).map((entry) => {
    const folder = `${entry.namespace}/${entry.secret}`
    const own = folders.get(folder)
    if (own === undefined) throw invalid(folder, `is not in it, or twice in ${MANIFEST}`)
    folders.delete(folder)
    return readKey(folder, own, entry)
  })
  for (const folder of folders.keys()) throw invalid(folder, `is not named in ${MANIFEST}`)
  return keys
}

function readKey(
  folder: string,
  files: ReadonlyMap<string, Uint8Array>,
  { namespace, secret, onion, until, hostname }: ManifestKey,
): ArchivedKey {
  const read = readKeyFolder(files)
  if (!read.ok) throw invalid(`${folder}/${read.file}`, read.message)
  const { address } = read.folder.key
  if (`${address}.onion` !== hostname)
    throw invalid(folder, `holds the key of ${address}.onion, and should hold that of ${hostname}`)
  const clientKeys = new Map<string, Uint8Array>()
  for (const [path, content] of files) {
    const name = /^client_keys\/([^/]+)\.auth_private$/.exec(path)?.[1]
    if (name === undefined) continue
    const key = readPrivateKey(content, address)
    if (!key.ok) throw invalid(`${folder}/${path}`, key.message)
    clientKeys.set(name, key.key.secret)
  }
  return { namespace, secret, onion, ...(until === undefined ? {} : { until }), ...read.folder, clientKeys }
}

/** By `NAMESPACE/SECRET`, and then by the path below it. */
function byFolder(files: ReadonlyMap<string, Uint8Array>): Map<string, Map<string, Uint8Array>> {
  const folders = new Map<string, Map<string, Uint8Array>>()
  for (const [path, content] of files) {
    const [namespace, secret, ...rest] = path.split('/')
    const folder = `${namespace}/${secret}`
    const own = folders.get(folder) ?? new Map<string, Uint8Array>()
    folders.set(folder, own.set(rest.join('/'), content))
  }
  return folders
}

async function unpack(archive: Uint8Array): Promise<Map<string, Uint8Array>> {
  if (archive.length > ARCHIVE_LIMIT) {
    throw invalid('the archive', `has more than ${ARCHIVE_LIMIT / 1024 / 1024} MB: it is no backup of keys`)
  }
  const files = new Map<string, Uint8Array>()
  for (const { header, data } of await entriesOf(archive)) {
    const { name, type = 'file' } = header
    if (type === 'directory') continue
    if (type !== 'file' || data === undefined)
      throw invalid(name, `is a ${type}, and only files can be in it`)
    if (files.has(name)) throw invalid(name, 'is in it twice')
    // A folder is made of its name nowhere; what is no name of ours is of no use either.
    if (name.startsWith('/') || name.split('/').some((part) => part === '' || part === '.' || part === '..'))
      throw invalid(name, 'is no path that a backup of keys has')
    files.set(name, data)
  }
  return files
}

async function entriesOf(archive: Uint8Array): Promise<Awaited<ReturnType<typeof unpackTar>>> {
  try {
    return await unpackTar(archive, { strict: true })
  } catch (error) {
    throw invalid('the archive', `is damaged: ${messageOf(error)}`)
  }
}

function readManifest(text: Uint8Array): ManifestKey[] {
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(text).toString('utf8'))
  } catch {
    throw invalid(MANIFEST, 'is no JSON')
  }
  const version = (value as { version?: unknown } | null)?.version
  if (version !== undefined && version !== 1)
    throw invalid(MANIFEST, `has version ${String(version).slice(0, 20)}, and this postern reads version 1`)
  const read = manifestSchema.safeParse(value)
  if (read.success) return read.data.keys
  const issue = read.error.issues[0]
  throw invalid(MANIFEST, `${issue?.path.join('.')}: ${issue?.message}`)
}

function invalid(entry: string, message: string): PosternError {
  return new PosternError('ArchiveInvalid', `${JSON.stringify(entry.slice(0, 300))} ${message}`)
}
