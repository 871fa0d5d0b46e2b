import { SOURCE_ANNOTATION } from '../../cluster/cluster.ts'
import { emptyPlan, lookAgain, type Plan, removeObject } from '../../controller/plan.ts'
import { type Resource, sameJson } from '../../core/resource.ts'
import { DEFAULT_DAEMON } from '../api/group.ts'
import { accessEndpoints, accessServices } from './access.ts'
import { bridgesStatus, curateBridges, type DaemonBridges, planBridges } from './bridges.ts'
import { clientSecret, clientSecretChange, clientSecretName } from './client-keys.ts'
import { disruptionBudget, networkPolicy, serviceAccount } from './companions.ts'
import { daemonConditions } from './daemon-status.ts'
import { deployment } from './deployment.ts'
import { formerAddresses, nextEnd, servedFormer } from './former-keys.ts'
import { daemonHealing, type Healing, onionHealing, planHealing } from './healing-plan.ts'
import { identityOf, type Mounts, mountsOf, type OnionKeyFile } from './mounts.ts'
import { componentOf, PROVISIONED_ANNOTATION } from './names.ts'
import type { Observed, ObservedOnion } from './observed.ts'
import { encodedKey, keySecret, retentionChange } from './onion-keys.ts'
import { onionLocation } from './onion-location.ts'
import { DESCRIPTOR_LIFETIME, onionConditions, onionState } from './onion-status.ts'
import { provisionedDaemon } from './owned.ts'
import { stateClaim } from './persistence.ts'
import { planPods } from './pods.ts'
import {
  authFiles,
  decideProxies,
  type ProxyDecision,
  proxyConditions,
  proxyTargets,
} from './proxy-status.ts'
import { metricsService, proxyService } from './services.ts'
import { statusOf } from './status.ts'
import { publishable, topologyOf } from './topology.ts'

/** What one daemon, its onions and its proxies need done. Pure but for the randomness in `observed.make`. */
export function plan(observed: Observed, now: number): Plan {
  const plan = emptyPlan()
  const { daemon, object, onions, proxies } = observed
  const bound = onions.length + proxies.length > 0
  planKeys(plan, observed)
  if (object === undefined) {
    // A daemon of another name is never made: a spelling mistake is likelier than a wish.
    if (bound && daemon.name === DEFAULT_DAEMON) plan.create.push(provisionedDaemon(daemon))
    planPods(plan, observed, undefined, now)
    if (!bound) return plan
  } else if (!bound && isProvisioned(object) && !serves(observed)) {
    removeObject(plan, object)
    return plan
  }
  const decisions = decideProxies(daemon, proxies, object)
  const bridges = curateBridges(observed, now)
  const healing = planHealing(plan, observed, now)
  let mounts: Mounts | undefined
  if (object !== undefined && object.metadata.deletionTimestamp === undefined) {
    mounts = planObjects(plan, observed, { decisions, bridges, healing }, now)
    if (bridges !== undefined) planBridges(plan, observed, bridges)
    planPods(plan, observed, mounts, now)
  }
  planStatus(plan, observed, { decisions, bridges, healing, mounts }, now)
  return plan
}

/** A daemon that was made because it was needed goes when it is not; one that a user declares stays. */
function isProvisioned(object: Resource): boolean {
  const annotations = object.metadata.annotations ?? {}
  const spec = object.spec as object | undefined
  return (
    annotations[PROVISIONED_ANNOTATION] === 'true' &&
    annotations[SOURCE_ANNOTATION] === undefined &&
    (spec === undefined || Object.keys(spec).length === 0)
  )
}

/** Whether the agent still has something in force: it ends that before its pod does, which may take its time. */
function serves({ view }: Observed): boolean {
  const report = view?.report
  return report !== undefined && report.onions.length + report.targets.length > 0
}

function planKeys(plan: Plan, observed: Observed): void {
  for (const onion of observed.onions) {
    const stays = onion.object.metadata.deletionTimestamp === undefined
    if (onion.key.state === 'generate' && stays) {
      plan.create.push(keySecret(onion.object, observed.make.onionKey()))
    }
    if (onion.key.state === 'valid') {
      const change = retentionChange(onion.object, onion.key.secret)
      if (change !== undefined) plan.apply.push(change)
      if (stays) {
        planClients(plan, onion, onion.key.address, observed)
        planLocation(plan, onion, onion.key.address)
      }
    }
  }
}

function planLocation(plan: Plan, { object, locations = [] }: ObservedOnion, address: string): void {
  if (object.spec.onionLocation !== undefined) plan.apply.push(onionLocation(object, address))
  else for (const map of locations) removeObject(plan, map)
}

/** Pairs that are to be made for clients; those of former clients go. */
function planClients(plan: Plan, onion: ObservedOnion, address: string, { make }: Observed): void {
  const { object, clients = [], clientSecrets = [] } = onion
  for (const client of clients) {
    if (client.state === 'generate') {
      plan.create.push(clientSecret(object, client.name, make.clientKey(), address))
    }
    const change = clientSecretChange(object, client, address)
    if (change !== undefined) plan.apply.push(change)
  }
  const names = new Set(
    object.spec.clientAuthorization?.clients
      .filter(({ generate }) => generate === true)
      .map(({ name }) => clientSecretName(object.metadata.name, name)),
  )
  for (const secret of clientSecrets) {
    if (!names.has(secret.metadata.name)) removeObject(plan, secret)
  }
}

interface Decided {
  decisions: readonly ProxyDecision[]
  bridges: DaemonBridges | undefined
  healing: Healing
}

function planObjects(
  plan: Plan,
  observed: Observed,
  { decisions, bridges, healing }: Decided,
  now: number,
): Mounts {
  const { daemon, settings } = observed
  const object = observed.object!
  const identity = identityOf(observed.keys) ?? observed.make.reportIdentity()
  const accepted = decisions.filter((decision) => decision.plan.targets.length > 0)
  const topology = topologyOf(observed, decisions, now, healing)
  const content = {
    onions: onionKeys(observed.onions, now),
    auths: authFiles(accepted),
    identity,
    ...(bridges === undefined ? {} : { bridges: bridges.files }),
  }
  const all = mountsOf(object, daemon, topology, content)
  // What it looks at for others must not keep out what it is there for.
  const { watch: _watch, ...own } = topology
  const mounts = all.tooLarge === undefined ? all : mountsOf(object, daemon, own, content)
  // Keys first: an agent that reads a topology finds the keys that it names.
  if (mounts.tooLarge === undefined) plan.apply.push(mounts.keys, mounts.topology)
  if (settings.companions) plan.apply.push(serviceAccount(object, daemon), disruptionBudget(object, daemon))
  if (settings.networkPolicies) plan.apply.push(networkPolicy(object, daemon, topology, settings))
  planClaim(plan, observed)
  plan.apply.push(metricsService(object, daemon), deployment(object, daemon, settings))
  planServices(plan, observed, [
    ...accessServices(object, daemon),
    ...accepted.map((decision) => proxyService(daemon, decision)),
  ])
  return mounts
}

/** Those that are wanted; the others that were made go. One of a name may be another's: of a proxy, or of the daemon. */
function planServices(plan: Plan, { services }: Observed, wanted: readonly Resource[]): void {
  plan.apply.push(...wanted)
  const id = (service: Resource): string => `${componentOf(service)} ${service.metadata.name}`
  const kept = new Set(wanted.map(id))
  for (const service of services) {
    if (!kept.has(id(service))) removeObject(plan, service)
  }
}

function planClaim(plan: Plan, { object, daemon, claims = [] }: Observed): void {
  const claim = stateClaim(object!, daemon)
  if (claim !== undefined) plan.apply.push(claim)
  else for (const one of claims) removeObject(plan, one)
}

function planStatus(
  plan: Plan,
  observed: Observed,
  { decisions, bridges, healing, mounts }: Decided & { mounts: Mounts | undefined },
  now: number,
): void {
  const report = observed.view?.report
  for (const onion of observed.onions) {
    const state = onionState(onion, report)
    const hostname = onion.key.state === 'valid' ? `${onion.key.address}.onion` : undefined
    const former = formerAddresses(onion, report, now)
    const fields = {
      ...(hostname === undefined ? {} : { hostname }),
      ...(former.length === 0 ? {} : { former }),
      ...onionHealing(healing, onion.object.metadata.name),
    }
    const end = nextEnd(onion, now)
    if (end !== undefined) lookAgain(plan, end)
    add(plan, onion.object, statusOf(onion.object, onionConditions(onion, observed, now), fields, now))
    if (state?.lastUpload !== undefined) {
      const expires = state.lastUpload + DESCRIPTOR_LIFETIME - now
      if (expires > 0) lookAgain(plan, expires)
    }
  }
  for (const decision of decisions) {
    const fields = { targets: proxyTargets(decision, observed) }
    add(plan, decision.proxy, statusOf(decision.proxy, proxyConditions(decision, observed), fields, now))
  }
  if (observed.object !== undefined) {
    const fields = {
      ...(report?.tor.version === undefined ? {} : { version: report.tor.version }),
      ...(report === undefined ? {} : { bootstrapProgress: report.tor.progress }),
      ...(report === undefined
        ? {}
        : { onionsPublished: report.onions.filter((onion) => onion.state === 'published').length }),
      ...accessEndpoints(observed),
      ...bridgesStatus(bridges),
      ...daemonHealing(healing),
    }
    const conditions = daemonConditions(observed, bridges, mounts?.tooLarge)
    add(plan, observed.object, statusOf(observed.object, conditions, fields, now))
  }
}

/** A report may come many times a second, for many onions: what is said already is not even tried. */
function add(plan: Plan, object: Resource, status: ReturnType<typeof statusOf>): void {
  if (!sameJson(object.status, status.patch.status)) plan.status.push(status.patch)
  plan.notes.push(...status.notes)
}

/** Keys of all onions that the topology has. */
function onionKeys(onions: readonly ObservedOnion[], now: number): OnionKeyFile[] {
  return onions.flatMap((onion) => [
    ...(publishable(onion) && onion.key.state === 'valid'
      ? [{ name: onion.object.metadata.name, encoded: encodedKey(onion.key.secret) }]
      : []),
    ...servedFormer(onion, now).map(({ served, encoded }) => ({ name: served, encoded })),
  ])
}
