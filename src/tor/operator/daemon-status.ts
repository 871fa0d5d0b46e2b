import type { ConditionInput } from '../../core/conditions.ts'
import { Reason } from '../api/reasons.ts'
import type { TorState } from '../contract.ts'
import { olderThan } from '../version.ts'
import { accessCondition } from './access.ts'
import { bridgesCondition, type DaemonBridges } from './bridges.ts'
import type { Observed } from './observed.ts'
import { agentSilent, refusalOf } from './onion-status.ts'
import { withReady } from './status.ts'

/** The first version in which onion services are safe from a known man in the middle (tor's ChangeLog, 41297). */
const VERSION_FLOOR = '0.4.9.11'

/** @param tooLarge why the topology was not handed to the agent */
export function daemonConditions(
  observed: Observed,
  bridges?: DaemonBridges,
  tooLarge?: string,
): ConditionInput[] {
  const silent = agentSilent(observed)
  const notHandedOver = handOver(observed, tooLarge)
  const bridged = bridgesCondition(observed, bridges, silent)
  const access = accessCondition(observed, observed.view?.report?.access)
  if (silent !== undefined) {
    return withReady(
      [
        { type: 'TorBootstrapped', ...silent },
        ...(bridged === undefined ? [] : [bridged]),
        ...(notHandedOver === undefined ? [] : [notHandedOver]),
        { type: 'VersionSupported', ...silent },
        ...(access === undefined ? [] : [{ type: access.type, ...silent }]),
      ],
      '',
    )
  }
  const { tor, rejected } = observed.view!.report!
  return withReady(
    [
      bootstrapped(tor),
      ...(bridged === undefined ? [] : [bridged]),
      notHandedOver ?? topologyApplied(rejected),
      version(tor),
      ...(access === undefined ? [] : [access]),
    ],
    'tor is connected to the network',
  )
}

/** Why what is asked for does not even reach the agent; undefined while it does. */
function handOver(observed: Observed, tooLarge: string | undefined): ConditionInput | undefined {
  const type = 'TopologyApplied'
  if (tooLarge !== undefined) {
    return { type, status: 'False', reason: Reason.TopologyTooLarge, message: tooLarge }
  }
  const refusal = refusalOf(observed)
  return refusal === undefined ? undefined : { type, ...refusal }
}

function bootstrapped(tor: TorState): ConditionInput {
  const type = 'TorBootstrapped'
  if (tor.reason !== undefined) {
    return { type, status: 'False', reason: tor.reason, message: tor.message ?? 'tor does not run' }
  }
  if (!tor.bootstrapped) {
    return {
      type,
      status: 'False',
      reason: Reason.Bootstrapping,
      message: `tor is connecting to the network: ${tor.progress} %${tor.summary ? `, ${tor.summary}` : ''}`,
    }
  }
  return { type, status: 'True', reason: Reason.Bootstrapped, message: 'tor is connected to the network' }
}

function topologyApplied(rejected: string | undefined): ConditionInput {
  const type = 'TopologyApplied'
  if (rejected !== undefined) {
    return { type, status: 'False', reason: Reason.TopologyRejected, message: rejected }
  }
  return {
    type,
    status: 'True',
    reason: Reason.TopologyInForce,
    message: 'all that was asked for is in force',
  }
}

function version(tor: TorState): ConditionInput {
  const type = 'VersionSupported'
  if (tor.version === undefined) {
    return { type, status: 'Unknown', reason: Reason.Pending, message: 'tor has not told its version yet' }
  }
  if (olderThan(tor.version, VERSION_FLOOR)) {
    return {
      type,
      status: 'False',
      reason: Reason.VersionTooOld,
      message: `tor ${tor.version} has known faults in onion services; update it to ${VERSION_FLOOR} or newer`,
    }
  }
  return { type, status: 'True', reason: Reason.VersionSupported, message: `tor ${tor.version}` }
}
