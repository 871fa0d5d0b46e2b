import { join } from 'node:path'
import { PosternError } from '../../core/errors.ts'
import { type ArchivedKey, filesOf, packKeys } from '../../tor/onion/key-archive.ts'
import { UsageError } from '../errors.ts'
import { encrypter, type SealOptions } from './encryption.ts'
import { makeFolder, writeNew } from './files.ts'
import { type FoundClient, type FoundKey, type KeysOfOnion, keysOfOnions } from './onions.ts'
import { type PlaceOptions, withPlace } from './place.ts'

export interface ExportOptions extends PlaceOptions, SealOptions {
  /** Undefined: of all namespaces. */
  namespace: string | undefined
  /** File to make. */
  output?: string
  /** Folder to make, with the keys as tor has them: not encrypted. */
  plainFolder?: string
  withClientKeys?: boolean
}

/**
 * Writes the keys of OnionServices to a file that is encrypted, or as tor's folders. What cannot be read is left out and
 * said, and the error that ends it says so as well: a backup that lacks one key is better than none.
 *
 * @param say prints a line for a person
 * @throws UsageError, PosternError `NotFound`, `KeysIncomplete`
 */
export async function exportKeys(
  names: readonly string[],
  options: ExportOptions,
  say: (line: string) => void,
): Promise<void> {
  const { output, plainFolder, namespace, withClientKeys = false } = options
  if ((output === undefined) === (plainFolder === undefined))
    throw new UsageError(
      'say where to: --output FILE, which is encrypted, or --plain-folder DIR, which is not',
    )
  // Before anything is read: a wrong recipient is found first.
  const seal = output === undefined ? undefined : await encrypter(options)
  const onions = await withPlace(options, (place) => keysOfOnions(place, names, namespace))
  const { keys, problems } = collected(onions, withClientKeys)
  for (const problem of problems) say(`left out: ${problem}`)
  if (keys.length === 0) throw new PosternError('NotFound', 'there is no key to export')
  if (output !== undefined) await writeNew(output, await seal!.encrypt(await packKeys(keys, Date.now())))
  else await writeFolders(plainFolder!, keys)
  for (const { namespace, secret, onion, until, key } of keys) {
    const former = until === undefined ? '' : `, former until ${until}`
    say(`${namespace}/${secret}: ${key.address}.onion (OnionService ${onion}${former})`)
  }
  const made = output ?? plainFolder
  say(`${keys.length} ${keys.length === 1 ? 'key' : 'keys'} in ${made}`)
  if (problems.length > 0)
    throw new PosternError('KeysIncomplete', `${made} is not whole: ${problems.length} left out, see above`)
}

function collected(
  onions: readonly KeysOfOnion[],
  withClientKeys: boolean,
): { keys: ArchivedKey[]; problems: string[] } {
  // Two onions may share a Secret.
  const keys = new Map<string, ArchivedKey>()
  const problems: string[] = []
  for (const { onion, key, former, clients } of onions) {
    const { namespace = 'default', name } = onion.metadata
    const usable = clients.filter((one) => one.publicKey !== undefined)
    const add = (found: FoundKey, until?: string): void => {
      if (found.key === undefined) {
        problems.push(`${namespace}/${name}: ${found.problem}`)
        return
      }
      const id = `${namespace}/${found.secret}`
      if (keys.has(id)) return
      keys.set(id, {
        namespace,
        secret: found.secret,
        onion: name,
        ...(until === undefined ? {} : { until }),
        key: found.key,
        clients: usable.map(({ name: client, publicKey }) => ({ name: client, publicKey: publicKey! })),
        clientKeys: withClientKeys && until === undefined ? privateKeys(usable) : new Map(),
      })
    }
    add(key)
    for (const one of former) add(one, one.until)
    for (const { name: client, problem } of clients) {
      if (problem !== undefined) problems.push(`${namespace}/${name}, client ${client}: ${problem}`)
    }
  }
  return { keys: [...keys.values()], problems }
}

function privateKeys(clients: readonly FoundClient[]): Map<string, Uint8Array> {
  return new Map(
    clients.flatMap(({ name, privateKey }) =>
      privateKey === undefined ? [] : [[name, privateKey] as const],
    ),
  )
}

async function writeFolders(folder: string, keys: readonly ArchivedKey[]): Promise<void> {
  await makeFolder(folder)
  const made = new Set<string>()
  const make = async (path: string): Promise<void> => {
    if (!made.has(path)) await makeFolder(path)
    made.add(path)
  }
  for (const one of keys) {
    await make(join(folder, one.namespace))
    const own = join(folder, one.namespace, one.secret)
    await make(own)
    for (const [path, content] of filesOf(one)) {
      const below = path.split('/')
      if (below.length > 1) await make(join(own, below[0]!))
      await writeNew(join(own, path), content)
    }
  }
}
