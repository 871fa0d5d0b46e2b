import { BlockList, isIP } from 'node:net'
import type { EndpointSlice, Service, ServicePort } from '../../cluster/kinds.ts'
import { Reason } from '../api/reasons.ts'
import type { Endpoint } from '../contract.ts'

export type Backend =
  | { ok: true; endpoints: Endpoint[] }
  | { ok: false; reason: string; message: string; endpoints: Endpoint[] }

const never = new BlockList()
never.addAddress('0.0.0.0')
never.addAddress('::', 'ipv6')
never.addSubnet('169.254.0.0', 16)
never.addSubnet('fe80::', 10, 'ipv6')
never.addSubnet('224.0.0.0', 4)
never.addSubnet('ff00::', 8, 'ipv6')
never.addAddress('fd00:ec2::254', 'ipv6')
never.addAddress('100.100.100.200')

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

/**
 * Where a port of a Service leads: its cluster address where it has one, its ready endpoints otherwise. Addresses that
 * would lead back into the daemon's own pod or to a node's metadata service are refused.
 *
 * @param where the field that names the Service, for messages
 */
export function resolveBackend(
  service: Service | undefined,
  slices: readonly EndpointSlice[],
  backend: { service: string; port: number | string },
  where: string,
  settings: { loopbackBackends: boolean },
): Backend {
  const named = `Service ${backend.service}`
  if (service === undefined) {
    return no(Reason.ServiceNotFound, `${named} does not exist; create it, or correct ${where}.service`)
  }
  if (service.spec?.type === 'ExternalName') {
    return no(
      Reason.ExternalNameRefused,
      `${named} is an ExternalName, which would send visitors to an outside name; use a Service without selector and an EndpointSlice with its addresses`,
    )
  }
  // Tor carries TCP only.
  const ports = (service.spec?.ports ?? []).filter((one) => (one.protocol ?? 'TCP') === 'TCP')
  const port = ports.find((one) => one.port === backend.port || one.name === backend.port)
  if (port === undefined) {
    return no(
      Reason.PortNotFound,
      `${named} has no port ${backend.port}; it has ${list(ports)}: correct ${where}.port`,
    )
  }
  const ready = readyEndpoints(slices, port)
  const addresses = ready.map((endpoint) => endpoint.host)
  const clusterIP = service.spec?.clusterIP
  const fixed = clusterIP !== undefined && clusterIP !== '' && clusterIP !== 'None'
  for (const address of fixed ? [clusterIP, ...addresses] : addresses) {
    const why = refused(address, settings)
    if (why !== undefined) {
      return no(Reason.AddressRefused, `${named} leads to ${address}, which is ${why}: it is never dialled`)
    }
  }
  // A cluster address stays in force while its pods come and go: which of them are ready is known best at the dial.
  const endpoints = fixed ? [{ host: clusterIP, port: port.port }] : ready
  if (ready.length === 0) {
    const message = `${named} has no ready endpoint for port ${backend.port}; check its selector and its pods, or its EndpointSlice`
    return { ok: false, reason: Reason.NoReadyEndpoints, message, endpoints }
  }
  return { ok: true, endpoints }
}

function readyEndpoints(slices: readonly EndpointSlice[], port: ServicePort): Endpoint[] {
  const endpoints: Endpoint[] = []
  for (const slice of slices) {
    const target = slice.ports?.find(
      (one) => (one.name ?? '') === (port.name ?? '') && (one.protocol ?? 'TCP') === 'TCP',
    )?.port
    if (target === undefined) continue
    for (const endpoint of slice.endpoints ?? []) {
      if (endpoint.conditions?.ready === false) continue
      for (const host of endpoint.addresses ?? [])
        if (isIP(host) !== 0) endpoints.push({ host, port: target })
    }
  }
  return endpoints.sort((a, b) => (a.host === b.host ? a.port - b.port : a.host < b.host ? -1 : 1))
}

function refused(address: string, settings: { loopbackBackends: boolean }): string | undefined {
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  if (isIP(address) === 0) return 'not an IP address'
  if (never.check(address, family)) return 'a link-local, metadata, multicast or unspecified address'
  if (!settings.loopbackBackends && loopback.check(address, family)) {
    return "a loopback address, the daemon's own pod"
  }
  return undefined
}

function list(ports: readonly ServicePort[]): string {
  if (ports.length === 0) return 'none'
  return ports.map((port) => (port.name ? `${port.port} (${port.name})` : String(port.port))).join(', ')
}

function no(reason: string, message: string): Backend {
  return { ok: false, reason, message, endpoints: [] }
}
