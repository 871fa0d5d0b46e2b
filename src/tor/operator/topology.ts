import { parseQuantity } from '../../core/quantity.ts'
import { BRIDGES_DEFAULTS } from '../api/bridges.ts'
import { type OnionPlan, TOPOLOGY_VERSION, type TorTopology } from '../contract.ts'
import { accessOf } from './access.ts'
import { admitted } from './client-keys.ts'
import { servedFormer } from './former-keys.ts'
import { type Healing, NOTHING_HEALED } from './healing-plan.ts'
import type { Observed, ObservedOnion } from './observed.ts'
import type { ProxyDecision } from './proxy-status.ts'

/** The topology of a daemon; the same world always gives the same document. */
export function topologyOf(
  observed: Observed,
  decisions: readonly ProxyDecision[],
  now: number,
  healing: Healing = NOTHING_HEALED,
): TorTopology {
  const { daemon, object, watch = [] } = observed
  const { restarts, freshCircuits } = healing.daemon
  const access = accessOf(object)
  const limit = parseQuantity(object?.spec?.resources?.limits?.memory ?? '')
  return {
    version: TOPOLOGY_VERSION,
    daemon: {
      name: daemon.name,
      namespace: daemon.namespace,
      logLevel: object?.spec?.logLevel ?? 'notice',
      ...(limit === undefined ? {} : { memoryLimit: Math.floor(limit) }),
      options: sorted(object?.spec?.options ?? {}),
      ...(access === undefined ? {} : { access }),
      ...(object?.spec?.bridges === undefined
        ? {}
        : { bridges: { transport: object.spec.bridges.transport ?? BRIDGES_DEFAULTS.transport } }),
      ...(object?.spec?.metrics?.addresses === true ? { metrics: { addresses: true } } : {}),
      ...(restarts === 0 ? {} : { restarts }),
      ...(freshCircuits === 0 ? {} : { freshCircuits }),
    },
    onions: observed.onions.flatMap((onion) => onionPlans(onion, healing, now)).sort(byName),
    proxies: decisions
      .map((decision) => decision.plan)
      .filter((plan) => plan.targets.length > 0)
      .sort(byName),
    ...(watch.length === 0 ? {} : { watch }),
  }
}

/** The onion, and what it was called before: the same under another address. */
function onionPlans(onion: ObservedOnion, { onions }: Healing, now: number): OnionPlan[] {
  const renewal = onions.get(onion.object.metadata.name)?.renewal ?? 0
  const plan = {
    name: onion.object.metadata.name,
    address: addressOf(onion),
    since: Date.parse(onion.object.metadata.creationTimestamp ?? '') || 0,
    ports: onion.object.spec.ports.map((port, index) => ({
      virtualPort: port.virtualPort,
      endpoints: onion.backends[index]?.endpoints ?? [],
    })),
    ...defencesOf(onion),
  }
  return [
    ...(publishable(onion) ? [{ ...plan, ...(renewal === 0 ? {} : { renewal }) }] : []),
    ...servedFormer(onion, now).map(({ served, address }) => ({ ...plan, name: served, address })),
  ]
}

function defencesOf({
  object,
  clients,
}: ObservedOnion): Pick<OnionPlan, 'clients' | 'circuitIds' | 'pow' | 'streams'> {
  const { pow, proxyProtocol, streams } = object.spec
  const admits = admitted(clients)
  return {
    ...(admits === undefined ? {} : { clients: admits }),
    ...(proxyProtocol === true ? { circuitIds: true } : {}),
    ...(pow === undefined || pow.enabled === false
      ? {}
      : {
          pow: {
            ...(pow.queueRate === undefined ? {} : { queueRate: pow.queueRate }),
            ...(pow.queueBurst === undefined ? {} : { queueBurst: pow.queueBurst }),
          },
        }),
    ...(streams === undefined
      ? {}
      : { streams: { max: streams.max, closeCircuit: streams.closeCircuit ?? false } }),
  }
}

/**
 * Whether an onion goes to the daemon: it needs a valid key that is its own. A backend that is missing keeps it
 * published with nothing behind it, so that the address is there at once when the backend comes. A private one that
 * nobody may enter is not published at all: to tor, no clients are everybody.
 */
export function publishable(onion: ObservedOnion): boolean {
  return (
    onion.key.state === 'valid' &&
    onion.rival === undefined &&
    admitted(onion.clients)?.length !== 0 &&
    onion.object.metadata.deletionTimestamp === undefined
  )
}

function addressOf(onion: ObservedOnion): string {
  return onion.key.state === 'valid' ? onion.key.address : ''
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}

function sorted(options: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1)))
}
