import type { Named } from '../../cluster/cluster.ts'
import type { Secret } from '../../cluster/kinds.ts'
import { once } from '../../core/once.ts'
import { ownerReference, type Resource } from '../../core/resource.ts'
import type { OnionService } from '../api/onion-service.ts'
import { Reason } from '../api/reasons.ts'
import {
  HOSTNAME_FILE,
  PUBLIC_KEY_FILE,
  readExpandedSecret,
  readOnionKey,
  SECRET_KEY_FILE,
  writeOnionKeyFiles,
} from '../onion/files.ts'
import type { OnionKey } from '../onion/key.ts'
import { MANAGED_BY, onionKeyName } from './names.ts'
import type { KeyState } from './observed.ts'

/** Name of the Secret that an onion's key stands in. */
export function keySecretName(onion: OnionService): string {
  return onion.spec.privateKeySecret?.name ?? onionKeyName(onion.metadata.name)
}

/** A key costs a scalar multiplication, and there may be many thousands. */
const stateOf = once(readSecret)

/** What is known of an onion's key from the Secret that should hold it. */
export function keyState(onion: OnionService, secret: Secret | undefined): KeyState {
  if (secret === undefined) {
    if (onion.spec.privateKeySecret === undefined) return { state: 'generate' }
    return {
      state: 'bad',
      reason: Reason.KeySecretNotFound,
      message: `Secret ${keySecretName(onion)} does not exist; create it with the key in ${SECRET_KEY_FILE}, or remove spec.privateKeySecret to have a key made`,
    }
  }
  return stateOf(secret)
}

/** A key that an onion had before. @param named what is known of its Secret; undefined: not looked at yet */
export function formerKeyState(
  onion: OnionService,
  secret: string,
  named: Named<Secret> | undefined,
): KeyState {
  if (named === undefined) return { state: 'pending' }
  if (named.object !== undefined) return keyState(onion, named.object)
  if (named.error !== undefined) return unreadableKey(onion, named.error)
  return {
    state: 'bad',
    reason: Reason.KeySecretNotFound,
    message: `Secret ${secret} of a former key does not exist; create it, or take it out of spec.formerKeys`,
  }
}

/** The key of an onion whose Secret may not, or cannot, be read. */
export function unreadableKey(onion: OnionService, why: string): KeyState {
  return {
    state: 'bad',
    reason: Reason.KeySecretUnreadable,
    message: `Secret ${keySecretName(onion)} cannot be read: ${why}`,
  }
}

/** The 64 bytes of a key that was found to be valid, in base64. A secret. */
export function encodedKey(secret: Secret): string {
  const bytes = readExpandedSecret(decode(secret.data?.[SECRET_KEY_FILE]))
  return Buffer.from(bytes ?? new Uint8Array()).toString('base64')
}

function readSecret(secret: Secret): KeyState {
  const data = secret.data ?? {}
  const secretKey = decode(data[SECRET_KEY_FILE])
  const publicKey = decode(data[PUBLIC_KEY_FILE])
  const hostname = decode(data[HOSTNAME_FILE])?.toString('utf8')
  const read = readOnionKey({ secretKey, publicKey, hostname })
  if (read.ok) return { state: 'valid', address: read.key.address, secret }
  return {
    state: 'bad',
    reason: read.reason,
    message: `Secret ${secret.metadata.name}: ${read.message}`,
  }
}

/**
 * The Secret that keeps a key that was made, in tor's own three files. It has no owner: a key is an address, so by
 * default it outlives its OnionService and is taken up again by the next of that name. For `keyRetention: Delete`
 * `retentionChange` applies the owner afterwards, since what is set at creation no later apply could take back.
 */
export function keySecret(onion: OnionService, key: OnionKey): Resource {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      namespace: onion.metadata.namespace ?? 'default',
      name: onionKeyName(onion.metadata.name),
      labels: { ...MANAGED_BY, 'app.kubernetes.io/part-of': 'postern' },
    },
    type: 'Opaque',
    data: keyData(key),
  }
}

/** `data` of a Secret with a key: tor's three files in base64. */
export function keyData(key: OnionKey): Record<string, string> {
  return Object.fromEntries(
    Object.entries(writeOnionKeyFiles(key)).map(([name, content]) => [
      name,
      Buffer.from(content).toString('base64'),
    ]),
  )
}

/**
 * The key Secret with its owner set right after `keyRetention` changed; undefined while it is right, and for a
 * Secret that is the user's.
 */
export function retentionChange(onion: OnionService, secret: Secret): Resource | undefined {
  if (onion.spec.privateKeySecret !== undefined) return undefined
  if (
    secret.metadata.labels?.['app.kubernetes.io/managed-by'] !== MANAGED_BY['app.kubernetes.io/managed-by']
  ) {
    return undefined
  }
  const owned = secret.metadata.ownerReferences?.some((one) => one.uid === onion.metadata.uid) === true
  if (owned === (onion.spec.keyRetention === 'Delete')) return undefined
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      namespace: secret.metadata.namespace ?? 'default',
      name: secret.metadata.name,
      labels: { ...MANAGED_BY, 'app.kubernetes.io/part-of': 'postern' },
      // Not as its controller: it is the user's as well, and outlives the daemon that uses it.
      ...(owned ? {} : { ownerReferences: [{ ...ownerReference(onion), controller: false }] }),
    },
    type: secret.type ?? 'Opaque',
    data: secret.data ?? {},
  }
}

function decode(value: string | undefined): Buffer | undefined {
  return value === undefined ? undefined : Buffer.from(value, 'base64')
}
