import { SECRET, type Secret } from '../../cluster/kinds.ts'
import { PosternError } from '../../core/errors.ts'
import { nearest } from '../../core/nearest.ts'
import { ONION_SERVICE, type OnionService } from '../../tor/api/onion-service.ts'
import { readPrivateKey, readPublicKey } from '../../tor/onion/client-key.ts'
import { HOSTNAME_FILE, PUBLIC_KEY_FILE, readOnionKey, SECRET_KEY_FILE } from '../../tor/onion/files.ts'
import type { OnionKey } from '../../tor/onion/key.ts'
import { CLIENT_PRIVATE_KEY, clientSecretName } from '../../tor/operator/client-keys.ts'
import { keySecretName } from '../../tor/operator/onion-keys.ts'
import type { Place } from './place.ts'

/** All keys of an OnionService, as they are found. */
export interface KeysOfOnion {
  onion: OnionService
  key: FoundKey
  former: (FoundKey & { until: string })[]
  clients: FoundClient[]
}

export interface FoundKey {
  /** Name of the Secret. */
  secret: string
  key?: OnionKey
  /** Why there is no key. */
  problem?: string
}

export interface FoundClient {
  name: string
  /** Name of the Secret, where the pair was made here. */
  secret?: string
  publicKey?: string
  /** 32 bytes, where the pair was made here. */
  privateKey?: Uint8Array
  problem?: string
}

/**
 * @param names of OnionServices; empty: all of the namespace
 * @param namespace undefined: all
 * @throws PosternError `NotFound`
 */
export async function keysOfOnions(
  place: Place,
  names: readonly string[],
  namespace: string | undefined,
): Promise<KeysOfOnion[]> {
  const all = await place.list(ONION_SERVICE, namespace)
  requireOnions(all, names, namespace)
  const chosen = all.filter(({ metadata }) => names.length === 0 || names.includes(metadata.name))
  const found: KeysOfOnion[] = []
  for (const onion of chosen) found.push(await keysOf(place, onion))
  return found
}

/** @throws PosternError `NotFound` for a name that none of them has */
export function requireOnions(
  all: readonly OnionService[],
  names: readonly string[],
  namespace: string | undefined,
): void {
  for (const name of names) {
    if (all.some(({ metadata }) => metadata.name === name)) continue
    const near = nearest(
      name,
      all.map(({ metadata }) => metadata.name),
    )
    const hint = near === undefined ? '' : `; did you mean '${near}'?`
    throw new PosternError(
      'NotFound',
      `OnionService ${namespace === undefined ? '' : `${namespace}/`}${name} does not exist${hint}`,
    )
  }
}

async function keysOf(place: Place, onion: OnionService): Promise<KeysOfOnion> {
  const { namespace = 'default', name } = onion.metadata
  const look = async (secret: string): Promise<FoundKey> =>
    foundKey(secret, await place.get(SECRET, namespace, secret))
  const former = []
  for (const { name: secret, until } of onion.spec.formerKeys ?? []) {
    former.push({ ...(await look(secret)), until })
  }
  const clients: FoundClient[] = []
  for (const { name: client, publicKey } of onion.spec.clientAuthorization?.clients ?? []) {
    if (publicKey !== undefined) {
      const read = readPublicKey(publicKey)
      clients.push(
        read.ok
          ? { name: client, publicKey: read.key }
          : { name: client, problem: `its publicKey ${read.message}` },
      )
      continue
    }
    const secret = clientSecretName(name, client)
    clients.push({
      name: client,
      secret,
      ...pairIn(secret, await place.get(SECRET, namespace, secret)),
    })
  }
  return { onion, key: await look(keySecretName(onion)), former, clients }
}

function foundKey(name: string, secret: Secret | undefined): FoundKey {
  if (secret === undefined) return { secret: name, problem: `Secret ${name} is not there` }
  const part = (file: string): Buffer | undefined => {
    const value = secret.data?.[file]
    return value === undefined ? undefined : Buffer.from(value, 'base64')
  }
  const read = readOnionKey({
    secretKey: part(SECRET_KEY_FILE),
    publicKey: part(PUBLIC_KEY_FILE),
    hostname: part(HOSTNAME_FILE)?.toString('utf8'),
  })
  return read.ok
    ? { secret: name, key: read.key }
    : { secret: name, problem: `Secret ${name}: ${read.message}` }
}

function pairIn(name: string, secret: Secret | undefined): Omit<FoundClient, 'name' | 'secret'> {
  if (secret === undefined) return { problem: `Secret ${name} is not there` }
  const read = readPrivateKey(Buffer.from(secret.data?.[CLIENT_PRIVATE_KEY] ?? '', 'base64'), '')
  if (!read.ok) return { problem: `Secret ${name}: ${CLIENT_PRIVATE_KEY} ${read.message}` }
  return { publicKey: read.key.publicKey, privateKey: read.key.secret }
}
