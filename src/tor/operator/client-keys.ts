import type { Secret } from '../../cluster/kinds.ts'
import { once } from '../../core/once.ts'
import { keyFor, ownerReference, type Resource } from '../../core/resource.ts'
import type { ProxyTargetSpec } from '../api/onion-proxy.ts'
import type { OnionService } from '../api/onion-service.ts'
import { Reason } from '../api/reasons.ts'
import {
  type ClientKey,
  clientKey,
  privateLine,
  publicLine,
  readPrivateKey,
  readPublicKey,
} from '../onion/client-key.ts'
import { MANAGED_BY } from './names.ts'

/** Keys of private onions: of the clients that an OnionService lets in, and ours for those that an OnionProxy reaches. */

/** Keys of the Secret that is made for a client. */
export const CLIENT_PRIVATE_KEY = 'private-key'
const CLIENT_PUBLIC_KEY = 'public-key'
const COMPONENT = { 'app.kubernetes.io/component': 'onion-client' }

export type ClientState = { name: string } & (
  | { state: 'valid'; publicKey: string; secret?: Secret }
  | { state: 'generate' }
  | { state: 'bad'; reason: string; message: string }
)

/** The key by which a target's onion is opened, as it was found. */
export type TargetAuth =
  /** Its Secret was not looked at yet. */
  | { state: 'pending' }
  /** `encoded`: 32 bytes in base64. */
  | { state: 'valid'; publicKey: string; encoded: string }
  | { state: 'bad'; reason: string; message: string }

export const clientSecretName = (onion: string, client: string): string => `${onion}-client-${client}`

/** Whether a Secret was made for a client of an onion. */
export function isClientSecret(secret: Secret): boolean {
  const component = secret.metadata.labels?.['app.kubernetes.io/component']
  return component === COMPONENT['app.kubernetes.io/component']
}

/** @param secrets those that were made here, by `namespace/name` */
export function clientStates(
  onion: OnionService,
  secrets: { get(key: string): Secret | undefined },
): ClientState[] | undefined {
  return onion.spec.clientAuthorization?.clients.map((client) => {
    const { name, publicKey } = client
    if (publicKey !== undefined) {
      const read = readPublicKey(publicKey)
      if (read.ok) return { name, state: 'valid', publicKey: read.key }
      return bad(name, Reason.ClientKeyInvalid, `client ${name}: publicKey ${read.message}`)
    }
    const secretName = clientSecretName(onion.metadata.name, name)
    if (secretName.length > 253) {
      const message = `client ${name}: its Secret would have a name of ${secretName.length} characters, and 253 are possible: shorten the name`
      return bad(name, Reason.ClientKeyInvalid, message)
    }
    const secret = secrets.get(keyFor(onion.metadata.namespace, secretName))
    if (secret === undefined) return { name, state: 'generate' }
    const key = keyIn(secret)
    if (key !== undefined) return { name, state: 'valid', publicKey: key.publicKey, secret }
    const message = `client ${name}: Secret ${secretName} holds no ${CLIENT_PRIVATE_KEY} that is an x25519 key: delete it to have a new pair made`
    return bad(name, Reason.ClientKeyInvalid, message)
  })
}

/** Public keys of those who may connect, sorted; undefined: everybody. */
export function admitted(clients: readonly ClientState[] | undefined): string[] | undefined {
  if (clients === undefined) return undefined
  return [...new Set(clients.flatMap((one) => (one.state === 'valid' ? [one.publicKey] : [])))].sort()
}

/**
 * The Secret of a generated pair, in both of tor's forms, so that it can be handed to a Tor Browser, a tor, or an
 * OnionProxy. It goes with its OnionService.
 *
 * @param address without `.onion`
 */
export function clientSecret(onion: OnionService, client: string, key: ClientKey, address: string): Resource {
  const data = {
    [CLIENT_PRIVATE_KEY]: Buffer.from(key.secret).toString('base64'),
    [CLIENT_PUBLIC_KEY]: key.publicKey,
    [`${client}.auth`]: `${publicLine(key.publicKey)}\n`,
    [`${client}.auth_private`]: `${privateLine(key, address)}\n`,
    hostname: `${address}.onion\n`,
  }
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      namespace: onion.metadata.namespace ?? 'default',
      name: clientSecretName(onion.metadata.name, client),
      labels: { ...MANAGED_BY, ...COMPONENT, 'app.kubernetes.io/part-of': 'postern' },
      ownerReferences: [ownerReference(onion)],
    },
    type: 'Opaque',
    data: Object.fromEntries(
      Object.entries(data).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
    ),
  }
}

/** The Secret with its other fields made right for the key that it holds; undefined while they are. */
export function clientSecretChange(
  onion: OnionService,
  state: ClientState,
  address: string,
): Resource | undefined {
  if (state.state !== 'valid' || state.secret === undefined) return undefined
  const key = keyIn(state.secret)
  if (key === undefined) return undefined
  const wanted = clientSecret(onion, state.name, key, address)
  const same = Object.entries(wanted.data as Record<string, string>).every(
    ([name, value]) => state.secret?.data?.[name] === value,
  )
  return same ? undefined : wanted
}

/** @param secret that the target names; undefined: there is none */
export function targetAuth(target: ProxyTargetSpec, address: string, secret: Secret | undefined): TargetAuth {
  const { name, key = CLIENT_PRIVATE_KEY } = target.clientAuthSecret!
  if (secret === undefined) {
    return {
      state: 'bad',
      reason: Reason.ClientSecretNotFound,
      message: `target ${target.name}: Secret ${name} does not exist; create it with our private key in ${key}`,
    }
  }
  const content = secret.data?.[key]
  if (content === undefined) {
    const keys = Object.keys(secret.data ?? {})
    const has = keys.length === 0 ? 'nothing' : keys.slice(0, 10).join(', ')
    return {
      state: 'bad',
      reason: Reason.ClientKeyInvalid,
      message: `target ${target.name}: Secret ${name} has no ${key}, it has ${has}: correct clientAuthSecret.key`,
    }
  }
  const read = readPrivateKey(Buffer.from(content, 'base64'), address)
  if (!read.ok) {
    const message = `target ${target.name}: ${key} of Secret ${name} ${read.message}`
    return { state: 'bad', reason: Reason.ClientKeyInvalid, message }
  }
  const { publicKey, secret: bytes } = read.key
  return { state: 'valid', publicKey, encoded: Buffer.from(bytes).toString('base64') }
}

/** Its public half costs a scalar multiplication, and an onion may have hundreds of clients. */
const keyIn = once((secret: Secret): ClientKey | undefined => {
  const text = Buffer.from(secret.data?.[CLIENT_PRIVATE_KEY] ?? '', 'base64').toString('latin1')
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === 32 ? clientKey(bytes) : undefined
})

function bad(name: string, reason: string, message: string): ClientState {
  return { name, state: 'bad', reason, message }
}
