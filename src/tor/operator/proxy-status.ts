import type { ConditionInput } from '../../core/conditions.ts'
import { keyOf } from '../../core/resource.ts'
import type { OnionProxy } from '../api/onion-proxy.ts'
import { Reason } from '../api/reasons.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import type { ProxyPlan } from '../contract.ts'
import { accessServices, ownPorts } from './access.ts'
import type { TargetAuth } from './client-keys.ts'
import { type DaemonId, metricsName } from './names.ts'
import type { Observed, ObservedProxy } from './observed.ts'
import { agentSilent } from './onion-status.ts'
import { withReady } from './status.ts'

/** What becomes of one proxy: the targets that got their port, and why the others did not. */
export interface ProxyDecision {
  proxy: OnionProxy
  plan: ProxyPlan
  /** One a target that lost its port: to whom, as the subject of a sentence. */
  losers: { target: string; port: number; winner: string }[]
  /** By target: the key by which its onion is opened. */
  auths: ReadonlyMap<string, TargetAuth>
  /** Set when a Service of that name is somebody else's. */
  nameTaken?: string
}

/** Gives out listen ports: the daemon's own are taken, then the oldest proxy wins, then the smaller UID. `proxies` come in that order. */
export function decideProxies(
  daemon: DaemonId,
  proxies: readonly ObservedProxy[],
  owner?: TorDaemon,
): ProxyDecision[] {
  const taken = ownPorts(owner)
  const names = new Set([metricsName(daemon)])
  if (owner !== undefined) for (const { metadata } of accessServices(owner, daemon)) names.add(metadata.name)
  return proxies.map(({ object, service, auths }) => {
    const decision: ProxyDecision = {
      proxy: object,
      auths: auths ?? new Map(),
      plan: { name: object.metadata.name, targets: [] },
      losers: [],
    }
    const foreign =
      service !== undefined &&
      !service.metadata.ownerReferences?.some((owner) => owner.uid === object.metadata.uid)
    if (foreign || names.has(object.metadata.name)) {
      decision.nameTaken = `a Service ${object.metadata.name} is there already and is not this proxy's; rename the OnionProxy or the Service`
      return decision
    }
    for (const target of object.spec.targets) {
      const winner = taken.get(target.listenPort)
      if (winner !== undefined) {
        decision.losers.push({ target: target.name, port: target.listenPort, winner })
        continue
      }
      taken.set(target.listenPort, `OnionProxy ${keyOf(object)} is older and`)
      decision.plan.targets.push({
        name: target.name,
        onion: hostOf(target.onion),
        port: target.port,
        listenPort: target.listenPort,
        ...(target.clientAuthSecret === undefined
          ? {}
          : { authFile: `${object.metadata.name}.${target.name}.auth` }),
      })
    }
    return decision
  })
}

/**
 * The address with `.onion`, of any form that the kind takes (white space, capitals, subdomains, no suffix): the agent
 * refuses a whole topology for one address that it does not know as such. tor itself drops subdomains.
 */
export function hostOf(onion: string): string {
  const name = onion
    .trim()
    .toLowerCase()
    .replace(/\.onion$/, '')
  return `${name.slice(name.lastIndexOf('.') + 1)}.onion`
}

/** A file of the keys Secret. */
export interface AuthFile {
  file: string
  /** 32 bytes in base64. A secret. */
  encoded: string
  publicKey: string
}

/** The files by which the targets that are in force are opened. */
export function authFiles(decisions: readonly ProxyDecision[]): AuthFile[] {
  return decisions.flatMap(({ plan, auths }) =>
    plan.targets.flatMap(({ name, authFile }) => {
      const auth = auths.get(name)
      if (authFile === undefined || auth?.state !== 'valid') return []
      return [{ file: authFile, encoded: auth.encoded, publicKey: auth.publicKey }]
    }),
  )
}

export function proxyConditions(decision: ProxyDecision, observed: Observed): ConditionInput[] {
  return withReady(
    [portsAccepted(decision, observed), targetsReachable(decision, observed)],
    'every target is reachable through Tor',
  )
}

/** The `targets` of a proxy's status. */
export function proxyTargets(decision: ProxyDecision, observed: Observed): Record<string, unknown>[] {
  const { name, namespace } = decision.proxy.metadata
  const host = observed.settings.serviceDns ? `${name}.${namespace}.svc` : observed.pod?.status?.podIP
  return decision.proxy.spec.targets.map((target) => {
    const state = targetState(decision, observed, target.name)
    const lost = decision.losers.find((loser) => loser.target === target.name)
    const auth = decision.auths.get(target.name)
    const reason = lost !== undefined ? Reason.PortTaken : auth?.state === 'bad' ? auth.reason : state?.reason
    return {
      name: target.name,
      endpoint: host === undefined || lost !== undefined ? '' : `${host}:${target.listenPort}`,
      reachable: state?.reachable === undefined ? 'Unknown' : state.reachable ? 'True' : 'False',
      ...(reason === undefined ? {} : { reason }),
    }
  })
}

function targetState(decision: ProxyDecision, observed: Observed, target: string) {
  return observed.view?.report?.targets.find(
    (state) => state.proxy === decision.plan.name && state.target === target,
  )
}

function portsAccepted(decision: ProxyDecision, observed: Observed): ConditionInput {
  const type = 'PortsAccepted'
  if (decision.nameTaken !== undefined) {
    return { type, status: 'False', reason: Reason.ServiceNameTaken, message: decision.nameTaken }
  }
  if (decision.losers.length > 0) {
    const message = decision.losers
      .map(
        (loser) =>
          `target ${loser.target}: ${loser.winner} has listenPort ${loser.port} of this daemon; choose another port`,
      )
      .join('; ')
    return { type, status: 'False', reason: Reason.PortTaken, message }
  }
  const silent = agentSilent(observed)
  if (silent !== undefined) return { type, ...silent }
  for (const target of decision.plan.targets) {
    const state = targetState(decision, observed, target.name)
    if (state === undefined) {
      return {
        type,
        status: 'Unknown',
        reason: Reason.Pending,
        message: 'the daemon has not taken it up yet',
      }
    }
    if (!state.listening) {
      return {
        type,
        status: 'False',
        reason: Reason.ListenFailed,
        message: `target ${target.name}: the daemon cannot listen on port ${target.listenPort}: ${state.message ?? 'no reason given'}`,
      }
    }
  }
  return { type, status: 'True', reason: Reason.PortsFree, message: 'every target has its port' }
}

function targetsReachable(decision: ProxyDecision, observed: Observed): ConditionInput {
  const type = 'TargetsReachable'
  if (decision.plan.targets.length === 0) {
    return {
      type,
      status: 'Unknown',
      reason: Reason.Pending,
      message: 'no target is in force: see PortsAccepted',
    }
  }
  const silent = agentSilent(observed)
  if (silent !== undefined) return { type, ...silent }
  let unknown = 0
  for (const target of decision.plan.targets) {
    const auth = decision.auths.get(target.name)
    if (auth?.state === 'bad') return { type, status: 'False', reason: auth.reason, message: auth.message }
    const state = targetState(decision, observed, target.name)
    if (state?.reachable === false) {
      return {
        type,
        status: 'False',
        reason: state.reason ?? 'GeneralFailure',
        message: `target ${target.name} (${target.onion}:${target.port}): ${state.message ?? 'the stream failed'}`,
      }
    }
    if (state?.reachable === undefined) unknown++
  }
  if (unknown > 0) {
    return {
      type,
      status: 'Unknown',
      reason: Reason.ProbePending,
      message: `${unknown} of ${decision.plan.targets.length} targets are not probed yet`,
    }
  }
  return {
    type,
    status: 'True',
    reason: Reason.AllReachable,
    message: 'a fresh circuit reached every target',
  }
}
