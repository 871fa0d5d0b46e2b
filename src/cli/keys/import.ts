import { stat } from 'node:fs/promises'
import { NAME_PATTERN } from '../../cluster/api-kind.ts'
import { SECRET, type Secret } from '../../cluster/kinds.ts'
import { PosternError } from '../../core/errors.ts'
import { ONION_SERVICE, type OnionService } from '../../tor/api/onion-service.ts'
import { clientKey } from '../../tor/onion/client-key.ts'
import { readExpandedSecret, SECRET_KEY_FILE } from '../../tor/onion/files.ts'
import { type ArchivedKey, unpackKeys } from '../../tor/onion/key-archive.ts'
import { readKeyFolder } from '../../tor/onion/key-folder.ts'
import { clientSecret } from '../../tor/operator/client-keys.ts'
import { MANAGED_BY, onionKeyName } from '../../tor/operator/names.ts'
import { keyData } from '../../tor/operator/onion-keys.ts'
import { UsageError } from '../errors.ts'
import { toYaml } from '../output.ts'
import { decrypter, type OpenOptions, SEALED_LIMIT, unlock } from './encryption.ts'
import { findFolders, folderName, readSome } from './files.ts'
import { type Place, type PlaceOptions, withPlace } from './place.ts'

export interface ImportOptions extends PlaceOptions, OpenOptions {
  /** For a folder of tor's; of a backup each key's own, unless one is given. */
  namespace?: string
  /** Name of the Secret, for a folder of tor's. */
  name?: string
  replace?: boolean
  dryRun?: boolean
}

interface Wanted {
  secret: Secret
  /** Of the onion, without `.onion`; undefined for a client's key. */
  address?: string
}

type Outcome = 'created' | 'unchanged' | 'replaced'

/**
 * Brings keys in: those of a backup, or of a folder that a tor of its own had. All is looked at before anything is
 * written, and what is there is kept.
 *
 * @param path of the backup or the folder
 * @param say prints a line for a person; `print` what can be used
 * @throws UsageError, PosternError `ArchiveLocked`, `ArchiveInvalid`, `KeyInvalid`, `KeyTaken`
 */
export async function importKeys(
  path: string,
  options: ImportOptions,
  { say, print }: { say(line: string): void; print(text: string): void },
): Promise<void> {
  const isFolder = (await stat(path).catch(() => undefined))?.isDirectory() === true
  const keys = isFolder ? await fromFolder(path, options, say) : await fromBackup(path, options)
  await withPlace(options, async (place) => {
    const wanted: Wanted[] = []
    for (const key of keys) wanted.push(...(await secretsOf(place, key)))
    const outcomes: [Wanted, Outcome][] = []
    for (const one of wanted) outcomes.push([one, await outcomeOf(place, one, options.replace === true)])
    for (const [{ secret, address }, outcome] of outcomes) {
      if (options.dryRun !== true && outcome === 'created') await place.create(SECRET, secret)
      if (options.dryRun !== true && outcome === 'replaced') await place.apply(SECRET, secret)
      const { namespace, name } = secret.metadata
      const what = address === undefined ? 'key of a client' : `${address}.onion`
      say(`secret/${name} in ${namespace} ${outcome}${options.dryRun === true ? ' (dry run)' : ''}: ${what}`)
    }
  })
  if (isFolder) for (const key of keys) print(manifestLines(key))
}

async function fromBackup(path: string, options: ImportOptions): Promise<ArchivedKey[]> {
  if (options.name !== undefined)
    throw new UsageError('--name is for a folder of tor: in a backup each key has its name')
  const open = await decrypter(options)
  const keys = await unpackKeys(await unlock(await readSome(path, SEALED_LIMIT), open, path))
  const { namespace } = options
  if (namespace === undefined) return keys
  const names = new Set(keys.map(({ secret }) => secret))
  if (names.size < keys.length)
    throw new UsageError(
      `${path} has Secrets of one name in several namespaces: leave -n out, and each goes where it was`,
    )
  return keys.map((key) => ({ ...key, namespace }))
}

async function fromFolder(
  path: string,
  { name, namespace = 'default' }: ImportOptions,
  say: (line: string) => void,
): Promise<ArchivedKey[]> {
  const folders = await findFolders(path)
  if (folders.length > 1 && name !== undefined)
    throw new UsageError(
      `${path} holds ${folders.length} onions: leave --name out, or name one folder of them`,
    )
  return folders.map(({ path: folder, files, open }) => {
    const read = readKeyFolder(files)
    if (!read.ok) throw new PosternError('KeyInvalid', `${folder}/${read.file}: ${read.message}`)
    const secret = name ?? folderName(folder)
    if (!NAME_PATTERN.test(secret) || secret.length > 253)
      throw new UsageError(`${JSON.stringify(secret)} cannot be the name of a Secret: give one with --name`)
    if (open) say(`${folder}/${SECRET_KEY_FILE} can be read by others than its owner: chmod 600`)
    return { namespace, secret, onion: secret, ...read.folder, clientKeys: new Map() }
  })
}

async function secretsOf(place: Place, one: ArchivedKey): Promise<Wanted[]> {
  const { namespace, secret: name, onion, key, clientKeys } = one
  const made = name === onionKeyName(onion)
  const secret: Secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      namespace,
      name,
      // A key that was made here is found by its label; any other by its name.
      ...(made ? { labels: { ...MANAGED_BY, 'app.kubernetes.io/part-of': 'postern' } } : {}),
    },
    type: 'Opaque',
    data: keyData(key),
  }
  const wanted: Wanted[] = [{ secret, address: key.address }]
  if (clientKeys.size === 0) return wanted
  const owner = await place.get(ONION_SERVICE, namespace, onion)
  for (const [client, privateKey] of clientKeys) {
    wanted.push({ secret: clientSecretFor(owner, one, client, privateKey) })
  }
  return wanted
}

function clientSecretFor(
  owner: OnionService | undefined,
  { namespace, onion, key }: ArchivedKey,
  client: string,
  privateKey: Uint8Array,
): Secret {
  const stand = { metadata: { namespace, name: onion, uid: '' } } as OnionService
  const made = clientSecret(owner ?? stand, client, clientKey(privateKey), key.address) as Secret
  if (owner !== undefined) return made
  const { ownerReferences: _, ...metadata } = made.metadata
  return { ...made, metadata }
}

/** @throws PosternError `KeyTaken` */
async function outcomeOf(place: Place, { secret, address }: Wanted, replace: boolean): Promise<Outcome> {
  const { namespace = 'default', name } = secret.metadata
  const there = await place.get(SECRET, namespace, name)
  if (there === undefined) return 'created'
  if (address === undefined ? sameData(secret, there) : sameKey(secret, there)) return 'unchanged'
  if (replace) return 'replaced'
  throw new PosternError(
    'KeyTaken',
    `Secret ${namespace}/${name} is there already, with another key: nothing was imported; export it first, and give --replace if it is to go`,
  )
}

function sameKey(one: Secret, other: Secret): boolean {
  const bytes = (secret: Secret): Buffer =>
    Buffer.from(
      readExpandedSecret(Buffer.from(secret.data?.[SECRET_KEY_FILE] ?? '', 'base64')) ?? new Uint8Array(),
    )
  return bytes(one).equals(bytes(other))
}

function sameData(one: Secret, other: Secret): boolean {
  return Object.entries(one.data ?? {}).every(([name, value]) => other.data?.[name] === value)
}

/** What an OnionService says to have this address, and these clients. */
export function manifestLines({ namespace, secret, key, clients }: ArchivedKey): string {
  const spec = {
    privateKeySecret: { name: secret },
    ...(clients.length === 0 ? {} : { clientAuthorization: { clients } }),
  }
  return `# ${key.address}.onion, for an OnionService in namespace ${namespace}:\n${toYaml({ spec })}`
}
