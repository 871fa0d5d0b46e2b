import type { Kind, Resource } from '../core/resource.ts'

/** Kubernetes' own kinds, as far as Postern reads or writes them. */

export interface Secret extends Resource {
  /** base64 */
  data?: Record<string, string>
  type?: string
}

export interface ConfigMap extends Resource {
  data?: Record<string, string>
}

export interface ServicePort {
  name?: string
  port: number
  targetPort?: number | string
  protocol?: string
}

export interface Service extends Resource {
  spec?: {
    type?: string
    clusterIP?: string
    externalName?: string
    selector?: Record<string, string>
    ports?: ServicePort[]
  }
}

export interface EndpointSlice extends Resource {
  addressType?: string
  endpoints?: {
    addresses: string[]
    conditions?: { ready?: boolean; serving?: boolean; terminating?: boolean }
    targetRef?: { kind?: string; name?: string; namespace?: string }
  }[]
  ports?: { name?: string; port?: number; protocol?: string }[]
}

export interface Pod extends Resource {
  spec?: Record<string, unknown>
  status?: {
    phase?: string
    podIP?: string
    conditions?: { type: string; status: string; reason?: string; message?: string }[]
    containerStatuses?: {
      name: string
      ready: boolean
      restartCount: number
      state?: { waiting?: { reason?: string; message?: string }; running?: object; terminated?: object }
    }[]
  }
}

/** coordination.k8s.io/v1: who leads, and until when. */
export interface Lease extends Resource {
  spec?: {
    holderIdentity?: string
    leaseDurationSeconds?: number
    /** RFC 3339 with six digits behind the point. */
    acquireTime?: string
    renewTime?: string
    leaseTransitions?: number
  }
}

export const SECRET: Kind<Secret> = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true }
export const CONFIG_MAP: Kind<ConfigMap> = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  shortNames: ['cm'],
  namespaced: true,
}
export const SERVICE: Kind<Service> = {
  apiVersion: 'v1',
  kind: 'Service',
  plural: 'services',
  shortNames: ['svc'],
  namespaced: true,
}
export const ENDPOINT_SLICE: Kind<EndpointSlice> = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
}
export const POD: Kind<Pod> = {
  apiVersion: 'v1',
  kind: 'Pod',
  plural: 'pods',
  shortNames: ['po'],
  namespaced: true,
}
export const DEPLOYMENT: Kind = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  plural: 'deployments',
  shortNames: ['deploy'],
  namespaced: true,
}
export const PERSISTENT_VOLUME_CLAIM: Kind = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
  shortNames: ['pvc'],
  namespaced: true,
}
export const NAMESPACE: Kind = {
  apiVersion: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  shortNames: ['ns'],
  namespaced: false,
}
export const SERVICE_ACCOUNT: Kind = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  shortNames: ['sa'],
  namespaced: true,
}
export const POD_DISRUPTION_BUDGET: Kind = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  shortNames: ['pdb'],
  namespaced: true,
}
export const NETWORK_POLICY: Kind = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  shortNames: ['netpol'],
  namespaced: true,
}
export const LEASE: Kind<Lease> = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
}
export const EVENT: Kind = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  plural: 'events',
  shortNames: ['ev'],
  namespaced: true,
}

export const KUBERNETES_KINDS: Kind[] = [
  SECRET,
  CONFIG_MAP,
  SERVICE,
  ENDPOINT_SLICE,
  POD,
  DEPLOYMENT,
  PERSISTENT_VOLUME_CLAIM,
  SERVICE_ACCOUNT,
  POD_DISRUPTION_BUDGET,
  NETWORK_POLICY,
  NAMESPACE,
  LEASE,
  EVENT,
]
