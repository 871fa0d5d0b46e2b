import { ownerReference, sameJson } from '../../core/resource.ts'
import type { EndpointSlice, Service } from '../kinds.ts'
import { type Container, portOf } from './pod-template.ts'

/** A running pod, as a Service sees it. */
export interface PodEndpoint {
  name: string
  namespace: string
  labels: Record<string, string>
  address: string
  ready: boolean
  terminating: boolean
  containers: readonly Container[]
}

export function sliceName(service: string): string {
  return `${service}-postern`
}

export function selects(service: Service, labels: Record<string, string>): boolean {
  const selector = Object.entries(service.spec?.selector ?? {})
  return selector.length > 0 && selector.every(([key, value]) => labels[key] === value)
}

/**
 * The EndpointSlice of a Service with a selector. One slice has one set of port numbers: of pods whose named ports
 * differ, those that agree with the first (by name) are in.
 */
export function endpointSlice(service: Service, pods: readonly PodEndpoint[]): EndpointSlice {
  const { name, namespace } = service.metadata
  const chosen = pods
    .filter((pod) => pod.namespace === (namespace ?? '') && selects(service, pod.labels))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  const ports = portsFor(service, chosen[0]?.containers ?? [])
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: sliceName(name),
      ...(namespace === undefined ? {} : { namespace }),
      labels: {
        'kubernetes.io/service-name': name,
        'endpointslice.kubernetes.io/managed-by': 'postern-pods',
      },
      ownerReferences: [ownerReference(service)],
    },
    addressType: 'IPv4',
    endpoints: chosen
      .filter((pod) => sameJson(portsFor(service, pod.containers), ports))
      .map((pod) => ({
        addresses: [pod.address],
        conditions: {
          ready: pod.ready && !pod.terminating,
          serving: pod.ready,
          terminating: pod.terminating,
        },
        targetRef: { kind: 'Pod', name: pod.name, namespace: pod.namespace },
      })),
    ports,
  }
}

function portsFor(
  service: Service,
  containers: readonly Container[],
): { name: string; port: number; protocol: string }[] {
  return (service.spec?.ports ?? []).flatMap((port) => {
    const number = portOf(containers, port.targetPort ?? port.port)
    // A name that no container has is no endpoint, as in a cluster.
    return number === undefined
      ? []
      : [{ name: port.name ?? '', port: number, protocol: port.protocol ?? 'TCP' }]
  })
}
