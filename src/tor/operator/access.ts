import type { ConditionInput } from '../../core/conditions.ts'
import type { Resource } from '../../core/resource.ts'
import { ACCESS_DEFAULTS } from '../api/access.ts'
import { Reason } from '../api/reasons.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import type { AccessState, TorAccess } from '../contract.ts'
import { ACCESS_COMPONENT, accessName, type DaemonId, podSelector } from './names.ts'
import type { Observed } from './observed.ts'
import { owned } from './owned.ts'

/** The ports at which workloads speak to tor themselves: `spec.socks` and `spec.httpConnect`. */

type Way = AccessState['name']

const PORT_NAMES: Readonly<Record<Way, string>> = { socks: 'socks', httpConnect: 'http-connect' }
const PROTOCOLS: Readonly<Record<Way, string>> = { socks: 'SOCKS', httpConnect: 'HTTP CONNECT' }

/** What is asked for, whole; undefined where it is nothing. */
export function accessOf(object: TorDaemon | undefined): TorAccess | undefined {
  const access: TorAccess = {}
  for (const way of ['socks', 'httpConnect'] as const) {
    const asked = object?.spec?.[way]
    if (asked === undefined) continue
    access[way] = { port: asked.port ?? ACCESS_DEFAULTS[way], exit: asked.exit ?? ACCESS_DEFAULTS.exit }
  }
  return Object.keys(access).length === 0 ? undefined : access
}

/** The daemon's own ports, each with the words for whoever asks for it as well. */
export function ownPorts(object: TorDaemon | undefined): Map<number, string> {
  return new Map(waysOf(accessOf(object)).map(([way, port]) => [port, `spec.${way} of the TorDaemon`]))
}

/** One Service a way, by which the workloads of the namespace find it. */
export function accessServices(owner: TorDaemon, daemon: DaemonId): Resource[] {
  return waysOf(accessOf(owner)).map(([way, port]) => {
    const metadata = owned(owner, daemon, accessName(daemon, way))
    return {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        ...metadata,
        labels: { ...metadata.labels, 'app.kubernetes.io/component': ACCESS_COMPONENT },
      },
      spec: {
        selector: podSelector(daemon),
        ports: [{ name: PORT_NAMES[way], port, targetPort: port, protocol: 'TCP' }],
      },
    }
  })
}

/** Ports at which a daemon takes its own namespace's pods in, by number. */
export function accessPorts(access: TorAccess | undefined): number[] {
  return waysOf(access)
    .map(([, port]) => port)
    .sort((a, b) => a - b)
}

/** Where workloads find them, for the daemon's status. */
export function accessEndpoints({ daemon, object, settings, pod }: Observed): Partial<Record<Way, string>> {
  return Object.fromEntries(
    waysOf(accessOf(object)).flatMap(([way, port]) => {
      const service = `${accessName(daemon, way)}.${daemon.namespace}.svc`
      const host = settings.serviceDns ? service : pod?.status?.podIP
      return host === undefined ? [] : [[way, `${host}:${port}`]]
    }),
  )
}

/**
 * Whether they are open; undefined where none is asked for. A port that cannot be had (one below 1024 where that takes
 * rights, one of another program on the same machine) is told here and harms nothing else.
 */
export function accessCondition(
  { object }: Observed,
  states: readonly AccessState[] | undefined,
): ConditionInput | undefined {
  const type = 'AccessReady'
  const ways = waysOf(accessOf(object))
  if (ways.length === 0) return undefined
  const found = ways.map(([way, port]) => ({ way, port, ...states?.find(({ name }) => name === way) }))
  const failed = found.find(({ message }) => message !== undefined)
  if (failed !== undefined) {
    const message = `spec.${failed.way}: ${failed.message}; choose another port`
    return { type, status: 'False', reason: Reason.ListenFailed, message }
  }
  const waits = found.filter(({ listening }) => listening !== true)
  if (waits.length > 0) {
    const names = waits.map(({ way }) => PROTOCOLS[way]).join(' and ')
    return {
      type,
      status: 'Unknown',
      reason: Reason.Pending,
      message: `tor does not listen for ${names} yet: it does once it is on the network`,
    }
  }
  const names = ways.map(([way]) => PROTOCOLS[way]).join(' and ')
  return { type, status: 'True', reason: Reason.AccessOpen, message: `tor listens for ${names}` }
}

function waysOf(access: TorAccess | undefined): [way: Way, port: number][] {
  return (['socks', 'httpConnect'] as const).flatMap((way): [Way, number][] => {
    const port = access?.[way]?.port
    return port === undefined ? [] : [[way, port]]
  })
}
