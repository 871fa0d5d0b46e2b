import type { Named } from '../../cluster/cluster.ts'
import type { Secret } from '../../cluster/kinds.ts'
import type { ReportView } from '../../cluster/reports.ts'
import type { Failure } from '../../controller/applier.ts'
import { makeReportIdentity } from '../../controller/report-identity.ts'
import { keyFor, keyOf, splitKey } from '../../core/resource.ts'
import type { OnionProxy, ProxyTargetSpec } from '../api/onion-proxy.ts'
import type { OnionService } from '../api/onion-service.ts'
import { Reason } from '../api/reasons.ts'
import type { FetchResult } from '../bridges/pacing.ts'
import type { TorReport, WatchPlan } from '../contract.ts'
import { WATCH_LIMIT } from '../limits.ts'
import { generateClientKey } from '../onion/client-key.ts'
import { generateOnionKey } from '../onion/key.ts'
import { resolveBackend } from './backend.ts'
import { observeBridges } from './bridge-seed.ts'
import { clientStates, type TargetAuth, targetAuth } from './client-keys.ts'
import { ACCESS_COMPONENT, componentOf, keysName, PROXY_COMPONENT } from './names.ts'
import type { FormerKey, KeyState, Observed, ObservedOnion, ObservedProxy, TorSettings } from './observed.ts'
import { formerKeyState } from './onion-keys.ts'
import { observeProber, type Probers } from './probers.ts'
import { hostOf } from './proxy-status.ts'
import { watchPlan } from './reachability.ts'
import {
  type AddressBook,
  BY_DAEMON,
  BY_INSTANCE,
  BY_ONION,
  BY_SERVICE,
  byAge,
  keyOfOnion,
  podOf,
  type World,
} from './world.ts'

/** Services of these come and go with what is declared. */
const COMPONENTS = [PROXY_COMPONENT, ACCESS_COMPONENT]

/** What the operator remembers of a daemon beside the objects. */
export interface Memory {
  view: ReportView<TorReport> | undefined
  refused: readonly Failure[]
  /** What came of the newest fetch of bridges. */
  fetched: FetchResult | undefined
  probers: Pick<Probers, 'proberOf' | 'watchedBy'>
  /** What is known of the agent of another daemon. */
  viewOf(daemon: string): ReportView<TorReport> | undefined
}

/**
 * All that the state of a daemon follows from, read from the caches; undefined when there is nothing to do, or when a
 * user's Secret was not looked at yet: a plan without its onion would end that.
 */
export function gather(
  world: World,
  book: AddressBook,
  { view, refused, fetched, probers, viewOf }: Memory,
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
  const states = observedOnions.flatMap(({ key: own, former = [] }) => [own, ...former.map((one) => one.key)])
  if (states.some(({ state }) => state === 'pending')) return undefined
  const observedProxies = proxies.map((proxy) => gatherProxy(world, proxy))
  const waits = ({ auths }: ObservedProxy): boolean =>
    [...(auths?.values() ?? [])].some(({ state }) => state === 'pending')
  if (observedProxies.some(waits)) return undefined
  const keys = world.secrets.get(keyFor(daemon.namespace, keysName(daemon)))
  const pod = podOf(pods)
  const seed = object?.spec?.bridges?.seed
  const named = seed === undefined ? undefined : world.userSecrets.get(keyFor(daemon.namespace, seed.name))
  const bridges = object === undefined ? undefined : observeBridges(object, named, keys, fetched)
  const prober = probers.proberOf(key)
  const watch = watched(world, probers.watchedBy(key))
  return {
    daemon,
    settings,
    ...(object === undefined ? {} : { object }),
    onions: observedOnions,
    proxies: observedProxies,
    services: world.services
      .by(BY_INSTANCE, key)
      .filter((service) => COMPONENTS.includes(componentOf(service) ?? '')),
    claims: world.claims.by(BY_INSTANCE, key),
    ...(keys === undefined ? {} : { keys }),
    ...(pod === undefined ? {} : { pod }),
    pods,
    ...(bridges === undefined ? {} : { bridges }),
    refused,
    ...(view === undefined ? {} : { view }),
    ...(prober === undefined ? {} : { prober: observeProber(prober, daemon.namespace, viewOf(prober)) }),
    ...(watch.length === 0 ? {} : { watch }),
    make: {
      onionKey: () => generateOnionKey(),
      clientKey: generateClientKey,
      reportIdentity: () => makeReportIdentity(`${daemon.name}.${daemon.namespace}.tor`),
    },
  }
}

/** The oldest onions of these daemons that are to be looked at; of too many, the rest is not. */
function watched(world: World, daemons: readonly string[]): WatchPlan[] {
  return daemons
    .flatMap((daemon) => world.onions.by(BY_DAEMON, daemon).sort(byAge))
    .flatMap((onion) => watchPlan(onion) ?? [])
    .slice(0, WATCH_LIMIT)
}

function gatherOnion(
  world: World,
  book: AddressBook,
  settings: TorSettings,
  object: OnionService,
): ObservedOnion {
  const { namespace } = object.metadata
  const key = keyOfOnion(world, object)
  const rival = key.state === 'valid' ? olderHolder(world, book, object, key.address) : undefined
  const clients = clientStates(object, world.secrets)
  const former = gatherFormer(world, book, object, key)
  return {
    object,
    key,
    ...(former.length === 0 ? {} : { former }),
    locations: world.configMaps.by(BY_ONION, object.metadata.uid ?? ''),
    ...(rival === undefined ? {} : { rival }),
    ...(clients === undefined ? {} : { clients }),
    clientSecrets: world.secrets.by(BY_ONION, object.metadata.uid ?? ''),
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

function gatherFormer(world: World, book: AddressBook, object: OnionService, current: KeyState): FormerKey[] {
  const { namespace, name } = object.metadata
  return (object.spec.formerKeys ?? []).map((spec, index) => {
    const named = world.userSecrets.get(keyFor(namespace, spec.name))
    const key = formerKeyState(object, spec.name, named)
    const address = key.state === 'valid' ? key.address : undefined
    const own = address !== undefined && current.state === 'valid' && current.address === address
    const [holder] = own ? [keyOf(object)] : address === undefined ? [] : book.holders(address)
    // A name of its own among the daemon's onions, whatever names there are.
    let served = `${name}.former-${index + 1}`
    while (world.onions.get(keyFor(namespace, served)) !== undefined) served += 'x'
    return {
      served,
      secret: spec.name,
      until: Date.parse(spec.until),
      key,
      ...(holder === undefined ? {} : { holder }),
    }
  })
}

function gatherProxy(world: World, object: OnionProxy): ObservedProxy {
  const service = world.services.get(keyOf(object))
  const auths = new Map<string, TargetAuth>()
  for (const target of object.spec.targets) {
    if (target.clientAuthSecret === undefined) continue
    const named = world.userSecrets.get(keyFor(object.metadata.namespace, target.clientAuthSecret.name))
    auths.set(target.name, authOf(target, named))
  }
  return {
    object,
    ...(service === undefined ? {} : { service }),
    ...(auths.size === 0 ? {} : { auths }),
  }
}

function authOf(target: ProxyTargetSpec, named: Named<Secret> | undefined): TargetAuth {
  if (named === undefined) return { state: 'pending' }
  if (named.object === undefined && named.error !== undefined) {
    const message = `target ${target.name}: Secret ${target.clientAuthSecret?.name} cannot be read: ${named.error}`
    return { state: 'bad', reason: Reason.KeySecretUnreadable, message }
  }
  return targetAuth(target, hostOf(target.onion).slice(0, -'.onion'.length), named.object)
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
