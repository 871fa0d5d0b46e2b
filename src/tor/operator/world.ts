import type { Cache, Cluster, NamedCache } from '../../cluster/cluster.ts'
import {
  CONFIG_MAP,
  type ConfigMap,
  DEPLOYMENT,
  ENDPOINT_SLICE,
  type EndpointSlice,
  NETWORK_POLICY,
  PERSISTENT_VOLUME_CLAIM,
  POD,
  POD_DISRUPTION_BUDGET,
  type Pod,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  type Secret,
  type Service,
} from '../../cluster/kinds.ts'
import { keyFor, keyOf, type Resource, splitKey } from '../../core/resource.ts'
import { DEFAULT_DAEMON } from '../api/group.ts'
import { ONION_PROXY, type OnionProxy } from '../api/onion-proxy.ts'
import { ONION_SERVICE, type OnionService } from '../api/onion-service.ts'
import { TOR_DAEMON, type TorDaemon } from '../api/tor-daemon.ts'
import { isClientSecret } from './client-keys.ts'
import { BY_USER_SECRET, secretsNamedBy } from './named-secrets.ts'
import { MANAGED_BY, onionOfKeyName } from './names.ts'
import type { KeyState, TorSettings } from './observed.ts'
import { keySecretName, keyState, unreadableKey } from './onion-keys.ts'
import { isLocation } from './onion-location.ts'

/** The caches that this domain reads, with the indexes by which it finds what belongs together. */
export interface World {
  daemons: Cache<TorDaemon>
  onions: Cache<OnionService>
  proxies: Cache<OnionProxy>
  /** Secrets that were made here. */
  secrets: Cache<Secret>
  /** Secrets of users, by the names that their OnionServices give: no other is ever looked at. */
  userSecrets: NamedCache<Secret>
  services: Cache<Service>
  slices: Cache<EndpointSlice>
  pods: Cache<Pod>
  /** Those that were made here. */
  configMaps: Cache<ConfigMap>
  /** Of daemons' volumes, made here. */
  claims: Cache<Resource>
  /** What else was made here: watched so that a stranger's change to it is undone. */
  made: Cache<Resource>[]
  ready: Promise<void>
}

const OURS = { labels: MANAGED_BY }

export const BY_DAEMON = 'daemon'
/** What was made for an onion alone, by its UID: Secrets of its clients, the ConfigMap of its site. */
export const BY_ONION = 'onion'
export const BY_SERVICE = 'service'
/** Objects by the daemon that they were made for. */
export const BY_INSTANCE = 'instance'

export function openWorld(cluster: Cluster, settings: TorSettings): World {
  const world = {
    daemons: cluster.cache(TOR_DAEMON),
    onions: cluster.cache(ONION_SERVICE),
    proxies: cluster.cache(ONION_PROXY),
    secrets: cluster.cache(SECRET, OURS),
    services: cluster.cache(SERVICE),
    slices: cluster.cache(ENDPOINT_SLICE),
    pods: cluster.cache(POD, OURS),
    configMaps: cluster.cache(CONFIG_MAP, OURS),
    claims: cluster.cache(PERSISTENT_VOLUME_CLAIM, OURS),
  }
  const made = [
    cluster.cache(DEPLOYMENT, OURS),
    ...(settings.companions
      ? [cluster.cache(SERVICE_ACCOUNT, OURS), cluster.cache(POD_DISRUPTION_BUDGET, OURS)]
      : []),
    ...(settings.networkPolicies ? [cluster.cache(NETWORK_POLICY, OURS)] : []),
  ]
  world.onions.index(BY_DAEMON, (onion) => [daemonKey(onion)])
  world.proxies.index(BY_DAEMON, (proxy) => [daemonKey(proxy)])
  for (const cache of [world.onions, world.proxies, world.daemons]) {
    cache.index(BY_USER_SECRET, (object) => secretsNamedBy(object))
  }
  world.secrets.index(BY_ONION, (secret) =>
    isClientSecret(secret) ? (secret.metadata.ownerReferences ?? []).map(({ uid }) => uid) : [],
  )
  world.onions.index(BY_SERVICE, (onion) =>
    onion.spec.ports.map((port) => keyFor(onion.metadata.namespace, port.backend.service)),
  )
  world.slices.index(BY_SERVICE, (slice) => {
    const service = slice.metadata.labels?.['kubernetes.io/service-name']
    return service === undefined ? [] : [keyFor(slice.metadata.namespace, service)]
  })
  world.configMaps.index(BY_ONION, (map) =>
    isLocation(map) ? (map.metadata.ownerReferences ?? []).map(({ uid }) => uid) : [],
  )
  world.services.index(BY_INSTANCE, (service) => instanceKeys(service))
  world.pods.index(BY_INSTANCE, (pod) => instanceKeys(pod))
  world.claims.index(BY_INSTANCE, (claim) => instanceKeys(claim))
  const caches = [...Object.values(world), ...made]
  const ready = Promise.all(caches.map((cache) => cache.ready)).then(() => undefined)
  return { ...world, userSecrets: cluster.named(SECRET), made, ready }
}

/** Key of the daemon that an onion or a proxy is bound to. */
export function daemonKey(object: OnionService | OnionProxy): string {
  return keyFor(object.metadata.namespace, object.spec.daemonRef?.name ?? DEFAULT_DAEMON)
}

/** Key of the daemon that an object was made for, by its labels. */
export function instanceKeys(object: Resource): string[] {
  const labels = object.metadata.labels ?? {}
  const instance = labels['app.kubernetes.io/instance']
  if (labels['app.kubernetes.io/name'] !== 'tor' || instance === undefined) return []
  return [keyFor(object.metadata.namespace, instance)]
}

/** The OnionServices whose key stands in a Secret, by its key. */
export function onionsOfSecret(world: World, secret: string): OnionService[] {
  const { namespace, name } = splitKey(secret)
  const made = onionOfKeyName(name)
  const onion = made === undefined ? undefined : world.onions.get(keyFor(namespace, made))
  const own = onion?.spec.privateKeySecret === undefined ? onion : undefined
  const named = world.onions
    .by(BY_USER_SECRET, secret)
    .filter(({ spec }) => spec.privateKeySecret?.name === name)
  return [...named, ...(own === undefined ? [] : [own])]
}

/** The key of an onion, from the Secret that was made for it or that its user names. */
export function keyOfOnion(world: World, onion: OnionService): KeyState {
  const key = keyFor(onion.metadata.namespace, keySecretName(onion))
  if (onion.spec.privateKeySecret === undefined) return keyState(onion, world.secrets.get(key))
  const named = world.userSecrets.get(key)
  if (named === undefined) return { state: 'pending' }
  if (named.object === undefined && named.error !== undefined) return unreadableKey(onion, named.error)
  return keyState(onion, named.object)
}

/** The address of an onion by its key, where that is valid. */
export function addressOf(world: World, onion: OnionService): string | undefined {
  const state = keyOfOnion(world, onion)
  return state.state === 'valid' ? state.address : undefined
}

/** Which OnionServices have which address, kept up to date as keys and onions come and go. */
export class AddressBook {
  readonly #addresses = new Map<string, string>()
  /** Nearly always one: an array of it takes a tenth of a set. */
  readonly #holders = new Map<string, readonly string[]>()

  /** Sets the address of an onion; returns the keys of all other onions that this concerns. */
  set(onion: string, address: string | undefined): string[] {
    const before = this.#addresses.get(onion)
    if (before === address) return []
    const concerned = new Set<string>()
    if (before !== undefined) {
      const holders = (this.#holders.get(before) ?? []).filter((holder) => holder !== onion)
      for (const holder of holders) concerned.add(holder)
      if (holders.length === 0) this.#holders.delete(before)
      else this.#holders.set(before, holders)
      this.#addresses.delete(onion)
    }
    if (address !== undefined) {
      const holders = this.#holders.get(address) ?? []
      for (const holder of holders) concerned.add(holder)
      this.#holders.set(address, [...holders, onion])
      this.#addresses.set(onion, address)
    }
    return [...concerned]
  }

  holders(address: string): readonly string[] {
    return this.#holders.get(address) ?? []
  }
}

/** Oldest first; what was made in the same second goes by UID. */
export function byAge(a: OnionService | OnionProxy, b: OnionService | OnionProxy): number {
  const left = `${a.metadata.creationTimestamp ?? ''} ${a.metadata.uid ?? ''}`
  const right = `${b.metadata.creationTimestamp ?? ''} ${b.metadata.uid ?? ''}`
  return left < right ? -1 : left > right ? 1 : keyOf(a) < keyOf(b) ? -1 : 1
}

/**
 * The pod that speaks for a daemon: the newest that is ready, and one that is ending before one that is not ready yet:
 * it serves until its successor does.
 */
export function podOf(pods: readonly Pod[]): Pod | undefined {
  const rank = (pod: Pod): number => (isReady(pod) ? 0 : 2) + (isEnding(pod) ? 1 : 0)
  return [...pods].sort((a, b) => rank(a) - rank(b) || newestFirst(a, b))[0]
}

export function isReady(pod: Pod): boolean {
  return pod.status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true
}

export function isEnding(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined
}

function newestFirst(a: Pod, b: Pod): number {
  return (a.metadata.creationTimestamp ?? '') < (b.metadata.creationTimestamp ?? '') ? 1 : -1
}
