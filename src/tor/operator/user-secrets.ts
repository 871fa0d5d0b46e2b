import { BY_USER_SECRET, type Declared, secretsNamedBy } from './named-secrets.ts'
import { keyOfOnion, type World } from './world.ts'

/** Secrets that users name in what they declare: each is followed by its name, for as long as something names it. */

const WAIT_MS = 10_000

/** Follows what an object names from now on, and lets go of what nothing names any more. */
export function followSecrets<T extends Declared>(
  world: World,
  before: T | undefined,
  after: T | undefined,
): void {
  const now = after === undefined ? [] : secretsNamedBy(after)
  for (const key of now) world.userSecrets.want(key)
  for (const key of before === undefined ? [] : secretsNamedBy(before)) {
    if (!now.includes(key) && namers(world, key).length === 0) world.userSecrets.drop(key)
  }
}

/** All that name a Secret. */
export function namers(world: World, key: string): Declared[] {
  const caches: { by(index: string, value: string): Declared[] }[] = [
    world.onions,
    world.proxies,
    world.daemons,
  ]
  return caches.flatMap((cache) => cache.by(BY_USER_SECRET, key))
}

/**
 * Waits for the Secrets that users name: which of two onions has a key first must not depend on which was read first.
 * Not for ever: the API server may be away, and the others go on.
 */
export async function userSecretsRead(world: World): Promise<void> {
  for (const cache of [world.onions, world.proxies, world.daemons]) {
    for (const object of cache.list()) followSecrets(world, undefined, object)
  }
  // Keys that were made here are not even looked at: each costs a while, and there may be thousands.
  const missing = (): boolean =>
    world.onions
      .list()
      .some(
        (onion) => onion.spec.privateKeySecret !== undefined && keyOfOnion(world, onion).state === 'pending',
      )
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = world.userSecrets.subscribe(() => missing() || resolve())
  const timer = setTimeout(resolve, WAIT_MS)
  if (missing()) await promise
  clearTimeout(timer)
  stop()
}
