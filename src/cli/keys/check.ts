import { stat } from 'node:fs/promises'
import { PosternError } from '../../core/errors.ts'
import { unpackKeys } from '../../tor/onion/key-archive.ts'
import { readKeyFolder } from '../../tor/onion/key-folder.ts'
import { textTable } from '../table.ts'
import { decrypter, type OpenOptions, SEALED_LIMIT, unlock } from './encryption.ts'
import { findFolders, readSome } from './files.ts'
import { type KeysOfOnion, keysOfOnions, requireOnions } from './onions.ts'
import { type PlaceOptions, withPlace } from './place.ts'

export interface CheckOptions extends PlaceOptions, OpenOptions {
  namespace: string | undefined
  /** A backup, or a folder of tor's, to be looked at instead. */
  file?: string
  output?: 'json'
}

/** A key that was looked at. */
export interface CheckedKey {
  namespace?: string
  /** OnionService. */
  onion?: string
  /** Secret, or folder. */
  secret: string
  /** With `.onion`. */
  hostname?: string
  /** Set: a former key, served until then. */
  until?: string
  clients: number
  problems: string[]
}

/**
 * Looks whether keys are there, whole, and what OnionServices say.
 *
 * @throws PosternError `KeysFaulty` where something is wrong, after it was printed
 */
export async function checkKeys(
  names: readonly string[],
  options: CheckOptions,
  print: (text: string) => void,
): Promise<void> {
  const keys =
    options.file === undefined
      ? await withPlace(options, async (place) => {
          // All of the namespace, and no more than whoever asks may read: an address may be another one's as well.
          const all = await keysOfOnions(place, [], options.namespace)
          requireOnions(
            all.map(({ onion }) => onion),
            names,
            options.namespace,
          )
          return checked(all, Date.now()).filter(
            ({ onion = '' }) => names.length === 0 || names.includes(onion),
          )
        })
      : await inFile(options.file, options)
  print(options.output === 'json' ? JSON.stringify(keys, null, 2) : asText(keys))
  const faulty = keys.filter(({ problems }) => problems.length > 0).length
  if (faulty > 0)
    throw new PosternError(
      'KeysFaulty',
      `something is wrong with ${faulty} of ${keys.length} keys, see above`,
    )
}

/** @param now milliseconds since the epoch */
export function checked(onions: readonly KeysOfOnion[], now: number): CheckedKey[] {
  const holders = new Map<string, string[]>()
  for (const { onion, key } of onions) {
    if (key.key === undefined) continue
    const { address } = key.key
    const holder = `${onion.metadata.namespace}/${onion.metadata.name}`
    holders.set(address, [...(holders.get(address) ?? []), holder])
  }
  return onions.flatMap(({ onion, key, former, clients }) => {
    const { namespace, name } = onion.metadata
    const about = { ...(namespace === undefined ? {} : { namespace }), onion: name }
    const problems = key.problem === undefined ? [] : [key.problem]
    const hostname = key.key === undefined ? undefined : `${key.key.address}.onion`
    const told = onion.status?.hostname
    if (hostname !== undefined && told !== undefined && told !== hostname)
      problems.push(`its status says ${told}: the operator has not seen this key yet, or does not run`)
    const sharers = (holders.get(key.key?.address ?? '') ?? []).filter(
      (one) => one !== `${namespace}/${name}`,
    )
    if (sharers.length > 0)
      problems.push(`${sharers.join(', ')} has the same key: only one of them is published`)
    for (const { name: client, problem } of clients) {
      if (problem !== undefined) problems.push(`client ${client}: ${problem}`)
    }
    return [
      {
        ...about,
        secret: key.secret,
        ...(hostname === undefined ? {} : { hostname }),
        clients: clients.length,
        problems,
      },
      ...former.map((one) => {
        const over = Date.parse(one.until) <= now
        const problem = over ? `its time is over: take it out of spec.formerKeys` : one.problem
        return {
          ...about,
          secret: one.secret,
          ...(one.key === undefined ? {} : { hostname: `${one.key.address}.onion` }),
          until: one.until,
          clients: clients.length,
          problems: problem === undefined ? [] : [problem],
        }
      }),
    ]
  })
}

async function inFile(path: string, options: OpenOptions): Promise<CheckedKey[]> {
  if ((await stat(path).catch(() => undefined))?.isDirectory() === true) {
    return (await findFolders(path)).map(({ path: folder, files, open }) => {
      const read = readKeyFolder(files)
      return {
        secret: folder,
        ...(read.ok ? { hostname: `${read.folder.key.address}.onion` } : {}),
        clients: read.ok ? read.folder.clients.length : 0,
        problems: [
          ...(read.ok ? [] : [`${read.file}: ${read.message}`]),
          ...(open ? ['others than its owner can read its secret key: chmod 600'] : []),
        ],
      }
    })
  }
  const open = await decrypter(options)
  const keys = await unpackKeys(await unlock(await readSome(path, SEALED_LIMIT), open, path))
  return keys.map(({ namespace, onion, secret, until, key, clients }) => ({
    namespace,
    onion,
    secret,
    hostname: `${key.address}.onion`,
    ...(until === undefined ? {} : { until }),
    clients: clients.length,
    problems: [],
  }))
}

function asText(keys: readonly CheckedKey[]): string {
  const rows = keys.map(
    ({ namespace = '', onion = '', secret, hostname = '-', until, clients, problems }) => [
      namespace,
      onion,
      secret,
      hostname,
      until === undefined ? 'current' : `until ${until}`,
      String(clients),
      problems.length === 0 ? 'ok' : 'faulty',
    ],
  )
  const table = textTable(['NAMESPACE', 'ONION', 'SECRET', 'HOSTNAME', 'SERVED', 'CLIENTS', 'STATE'], rows)
  const lines = keys.flatMap(({ onion, secret, problems }) =>
    problems.map((problem) => `${onion ?? secret}: ${problem}`),
  )
  return [table, ...lines].join('\n')
}
