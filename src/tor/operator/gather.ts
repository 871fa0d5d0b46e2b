import type { ReportView } from '../../cluster/reports.ts'
import type { Failure } from '../../controller/applier.ts'
import { makeReportIdentity } from '../../controller/report-identity.ts'
import { keyFor, keyOf, splitKey } from '../../core/resource.ts'
import type { OnionService } from '../api/onion-service.ts'
import type { TorReport } from '../contract.ts'
import { generateOnionKey } from '../onion/key.ts'
import { resolveBackend } from './backend.ts'
import { keysName } from './names.ts'
import type { Observed, ObservedOnion, TorSettings } from './observed.ts'
import {
  type AddressBook,
  BY_DAEMON,
  BY_INSTANCE,
  BY_SERVICE,
  byAge,
  keyOfOnion,
  podOf,
  type World,
} from './world.ts'

/** What the operator remembers of a daemon beside the objects. */
export interface Memory {
  view: ReportView<TorReport> | undefined
  refused: readonly Failure[]
}

/**
 * All that the state of a daemon follows from, read from the caches; undefined when there is nothing to do, or when a
 * user's Secret was not looked at yet: a plan without its onion would end that.
 */
export function gather(
  world: World,
  book: AddressBook,
  { view, refused }: Memory,
  settings: TorSettings,
  key: string,
): Observed | undefined {
  const daemon = splitKey(key)
  const object = world.daemons.get(key)
  const onions = world.onions.by(BY_DAEMON, key).sort(byAge)
  const proxies = world.proxies.by(BY_DAEMON, key).sort(byAge)
  const pods = world.pods.by(BY_INSTANCE, key)
  if (object === undefined && onions.length + proxies.length + pods.length === 0) return undefined
  const observedOnions = onions.map((onion) => gatherOnion(world, book, settings, onion))
  if (observedOnions.some((onion) => onion.key.state === 'pending')) return undefined
  const keys = world.secrets.get(keyFor(daemon.namespace, keysName(daemon)))
  const pod = podOf(pods)
  return {
    daemon,
    settings,
    ...(object === undefined ? {} : { object }),
    onions: observedOnions,
    proxies: proxies.map((proxy) => {
      const service = world.services.get(keyOf(proxy))
      return { object: proxy, ...(service === undefined ? {} : { service }) }
    }),
    services: world.services
      .by(BY_INSTANCE, key)
      .filter((service) => service.metadata.labels?.['app.kubernetes.io/component'] === 'onion-proxy'),
    ...(keys === undefined ? {} : { keys }),
    ...(pod === undefined ? {} : { pod }),
    pods,
    refused,
    ...(view === undefined ? {} : { view }),
    make: {
      onionKey: () => generateOnionKey(),
      reportIdentity: () => makeReportIdentity(`${daemon.name}.${daemon.namespace}.tor`),
    },
  }
}

function gatherOnion(
  world: World,
  book: AddressBook,
  settings: TorSettings,
  object: OnionService,
): ObservedOnion {
  const { namespace } = object.metadata
  const key = keyOfOnion(world, object)
  const rival = key.state === 'valid' ? olderHolder(world, book, object, key.key.address) : undefined
  return {
    object,
    key,
    ...(rival === undefined ? {} : { rival }),
    backends: object.spec.ports.map(({ backend }, index) => {
      const service = keyFor(namespace, backend.service)
      return resolveBackend(
        world.services.get(service),
        world.slices.by(BY_SERVICE, service),
        backend,
        `spec.ports[${index}].backend`,
        settings,
      )
    }),
  }
}

/** The oldest other OnionService with this address, if it is older than this one. */
function olderHolder(
  world: World,
  book: AddressBook,
  onion: OnionService,
  address: string,
): string | undefined {
  const others = book
    .holders(address)
    .filter((key) => key !== keyOf(onion))
    .flatMap((key) => world.onions.get(key) ?? [])
    .sort(byAge)
  const oldest = others[0]
  return oldest !== undefined && byAge(oldest, onion) < 0 ? keyOf(oldest) : undefined
}
