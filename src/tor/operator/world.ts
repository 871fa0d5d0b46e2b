import type { Cache, Cluster } from '../../cluster/cluster.ts'
import {
  ENDPOINT_SLICE,
  type EndpointSlice,
  POD,
  type Pod,
  SECRET,
  SERVICE,
  type Secret,
  type Service,
} from '../../cluster/kinds.ts'
import { keyFor, keyOf } from '../../core/resource.ts'
import { DEFAULT_DAEMON } from '../api/group.ts'
import { ONION_PROXY, type OnionProxy } from '../api/onion-proxy.ts'
import { ONION_SERVICE, type OnionService } from '../api/onion-service.ts'
import { TOR_DAEMON, type TorDaemon } from '../api/tor-daemon.ts'
import { keySecretName, keyState } from './onion-keys.ts'

/** The caches that this domain reads, with the indexes by which it finds what belongs together. */
export interface World {
  daemons: Cache<TorDaemon>
  onions: Cache<OnionService>
  proxies: Cache<OnionProxy>
  secrets: Cache<Secret>
  services: Cache<Service>
  slices: Cache<EndpointSlice>
  pods: Cache<Pod>
  ready: Promise<void>
}

export const BY_DAEMON = 'daemon'
export const BY_SECRET = 'secret'
export const BY_SERVICE = 'service'
/** Services and pods by the daemon that they were made for. */
export const BY_INSTANCE = 'instance'

export function openWorld(cluster: Cluster): World {
  const world = {
    daemons: cluster.cache(TOR_DAEMON),
    onions: cluster.cache(ONION_SERVICE),
    proxies: cluster.cache(ONION_PROXY),
    secrets: cluster.cache(SECRET),
    services: cluster.cache(SERVICE),
    slices: cluster.cache(ENDPOINT_SLICE),
    pods: cluster.cache(POD),
  }
  world.onions.index(BY_DAEMON, (onion) => [daemonKey(onion)])
  world.proxies.index(BY_DAEMON, (proxy) => [daemonKey(proxy)])
  world.onions.index(BY_SECRET, (onion) => [keyFor(onion.metadata.namespace, keySecretName(onion))])
  world.onions.index(BY_SERVICE, (onion) =>
    onion.spec.ports.map((port) => keyFor(onion.metadata.namespace, port.backend.service)),
  )
  world.slices.index(BY_SERVICE, (slice) => {
    const service = slice.metadata.labels?.['kubernetes.io/service-name']
    return service === undefined ? [] : [keyFor(slice.metadata.namespace, service)]
  })
  world.services.index(BY_INSTANCE, (service) => instanceKeys(service))
  world.pods.index(BY_INSTANCE, (pod) => instanceKeys(pod))
  const ready = Promise.all(Object.values(world).map((cache) => cache.ready)).then(() => undefined)
  return { ...world, ready }
}

/** Key of the daemon that an onion or a proxy is bound to. */
export function daemonKey(object: OnionService | OnionProxy): string {
  return keyFor(object.metadata.namespace, object.spec.daemonRef?.name ?? DEFAULT_DAEMON)
}

/** Key of the daemon that an object was made for, by its labels. */
export function instanceKeys(object: Service | Pod): string[] {
  const labels = object.metadata.labels ?? {}
  const instance = labels['app.kubernetes.io/instance']
  if (labels['app.kubernetes.io/name'] !== 'tor' || instance === undefined) return []
  return [keyFor(object.metadata.namespace, instance)]
}

/** The address of an onion by its key, where that is valid. */
export function addressOf(world: World, onion: OnionService): string | undefined {
  const secret = world.secrets.get(keyFor(onion.metadata.namespace, keySecretName(onion)))
  const state = keyState(onion, secret)
  return state.state === 'valid' ? state.key.address : undefined
}

/** Which OnionServices have which address, kept up to date as keys and onions come and go. */
export class AddressBook {
  readonly #addresses = new Map<string, string>()
  readonly #holders = new Map<string, Set<string>>()

  /** Sets the address of an onion; returns the keys of all other onions that this concerns. */
  set(onion: string, address: string | undefined): string[] {
    const before = this.#addresses.get(onion)
    if (before === address) return []
    const concerned = new Set<string>()
    if (before !== undefined) {
      const holders = this.#holders.get(before)
      holders?.delete(onion)
      for (const holder of holders ?? []) concerned.add(holder)
      if (holders?.size === 0) this.#holders.delete(before)
      this.#addresses.delete(onion)
    }
    if (address !== undefined) {
      const holders = this.#holders.get(address) ?? new Set<string>()
      for (const holder of holders) concerned.add(holder)
      holders.add(onion)
      this.#holders.set(address, holders)
      this.#addresses.set(onion, address)
    }
    return [...concerned]
  }

  holders(address: string): string[] {
    return [...(this.#holders.get(address) ?? [])]
  }
}

/** Oldest first; what was made in the same second goes by UID. */
export function byAge(a: OnionService | OnionProxy, b: OnionService | OnionProxy): number {
  const left = `${a.metadata.creationTimestamp ?? ''} ${a.metadata.uid ?? ''}`
  const right = `${b.metadata.creationTimestamp ?? ''} ${b.metadata.uid ?? ''}`
  return left < right ? -1 : left > right ? 1 : keyOf(a) < keyOf(b) ? -1 : 1
}

/** The pod that speaks for a daemon: the newest that is not on its way out. */
export function podOf(world: World, key: string): Pod | undefined {
  return world.pods
    .by(BY_INSTANCE, key)
    .filter((pod) => pod.metadata.deletionTimestamp === undefined)
    .sort((a, b) => ((a.metadata.creationTimestamp ?? '') < (b.metadata.creationTimestamp ?? '') ? 1 : -1))[0]
}
