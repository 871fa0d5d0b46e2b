import type { ApiKind, Column } from '../cluster/api-kind.ts'
import type { ConfigMap, EndpointSlice, Pod, Secret, Service } from '../cluster/kinds.ts'
import type { Kind, Resource } from '../core/resource.ts'
import { type EventLike, lastSeen, noteOf, objectOf } from './events.ts'

/** A column by path, as in a CRD, or by a function where a path does not reach. */
export type TableColumn =
  | Column
  | (Pick<Column, 'name' | 'type' | 'priority'> & { value(object: never): unknown })

const AGE: TableColumn = { name: 'AGE', type: 'date', jsonPath: '.metadata.creationTimestamp' }

/** The columns of a kind behind NAME. Kubernetes' own kinds are shown as kubectl shows them. */
export function columnsOf(kind: Kind): TableColumn[] {
  if ('columns' in kind) return (kind as ApiKind).columns
  return KUBERNETES[kind.kind] ?? [AGE]
}

/** Whether a kind's objects are told apart by NAME; events are not. */
export function hasName(kind: Kind): boolean {
  return kind.kind !== 'Event'
}

const KUBERNETES: Record<string, TableColumn[]> = {
  Secret: [
    { name: 'TYPE', type: 'string', value: (secret: Secret) => secret.type ?? 'Opaque' },
    { name: 'DATA', type: 'integer', value: (secret: Secret) => Object.keys(secret.data ?? {}).length },
    AGE,
  ],
  ConfigMap: [
    { name: 'DATA', type: 'integer', value: (map: ConfigMap) => Object.keys(map.data ?? {}).length },
    AGE,
  ],
  Service: [
    { name: 'TYPE', type: 'string', value: (service: Service) => service.spec?.type ?? 'ClusterIP' },
    { name: 'CLUSTER-IP', type: 'string', jsonPath: '.spec.clusterIP' },
    {
      name: 'PORT(S)',
      type: 'string',
      value: (service: Service) =>
        (service.spec?.ports ?? []).map(({ port, protocol }) => `${port}/${protocol ?? 'TCP'}`).join(','),
    },
    AGE,
  ],
  EndpointSlice: [
    { name: 'ADDRESSTYPE', type: 'string', jsonPath: '.addressType' },
    {
      name: 'PORTS',
      type: 'string',
      value: (slice: EndpointSlice) => (slice.ports ?? []).map(({ port }) => port).join(','),
    },
    {
      name: 'ENDPOINTS',
      type: 'string',
      value: (slice: EndpointSlice) =>
        (slice.endpoints ?? []).flatMap(({ addresses }) => addresses).join(','),
    },
    AGE,
  ],
  Pod: [
    { name: 'READY', type: 'string', value: podReady },
    { name: 'STATUS', type: 'string', value: podStatus },
    {
      name: 'RESTARTS',
      type: 'integer',
      value: (pod: Pod) =>
        (pod.status?.containerStatuses ?? []).reduce((sum, container) => sum + container.restartCount, 0),
    },
    { name: 'AGE', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'IP', type: 'string', jsonPath: '.status.podIP', priority: 1 },
  ],
  Deployment: [
    {
      name: 'READY',
      type: 'string',
      value: (deployment: Workload) =>
        `${deployment.status?.readyReplicas ?? 0}/${deployment.spec?.replicas ?? 1}`,
    },
    AGE,
  ],
  Namespace: [
    { name: 'STATUS', type: 'string', value: (space: Workload) => space.status?.phase ?? 'Active' },
    AGE,
  ],
  Event: [
    { name: 'LAST SEEN', type: 'date', value: (event: EventLike) => lastSeen(event) },
    { name: 'TYPE', type: 'string', jsonPath: '.type' },
    { name: 'REASON', type: 'string', jsonPath: '.reason' },
    { name: 'OBJECT', type: 'string', value: (event: EventLike) => objectOf(event) },
    { name: 'MESSAGE', type: 'string', value: (event: EventLike) => noteOf(event) },
  ],
}

interface Workload extends Resource {
  spec?: { replicas?: number }
  status?: { readyReplicas?: number; phase?: string }
}

function podReady(pod: Pod): string {
  const containers = pod.status?.containerStatuses ?? []
  return `${containers.filter((container) => container.ready).length}/${containers.length}`
}

/** As kubectl: why a container waits says more than the phase. */
function podStatus(pod: Pod): string {
  if (pod.metadata.deletionTimestamp !== undefined) return 'Terminating'
  for (const { state } of pod.status?.containerStatuses ?? []) {
    if (state?.waiting?.reason !== undefined) return state.waiting.reason
  }
  return pod.status?.phase ?? 'Pending'
}
