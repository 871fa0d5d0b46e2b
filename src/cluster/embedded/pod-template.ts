import { createHash } from 'node:crypto'
import { ownerReference, type Resource } from '../../core/resource.ts'
import type { Pod } from '../kinds.ts'

/** The parts of a pod template that a local pod honours; names as in the Kubernetes API (core/v1). */

export interface KeySelector {
  name?: string
  key: string
  optional?: boolean
}

export interface FieldSelector {
  fieldRef?: { fieldPath: string }
  resourceFieldRef?: { resource: string; containerName?: string; divisor?: string }
}

export interface EnvVar {
  name: string
  value?: string
  valueFrom?: FieldSelector & { secretKeyRef?: KeySelector; configMapKeyRef?: KeySelector }
}

export interface EnvSource {
  prefix?: string
  configMapRef?: { name?: string; optional?: boolean }
  secretRef?: { name?: string; optional?: boolean }
}

export interface ProbeSpec {
  httpGet?: {
    path?: string
    port: number | string
    host?: string
    scheme?: string
    httpHeaders?: { name: string; value: string }[]
  }
  tcpSocket?: { port: number | string; host?: string }
  exec?: unknown
  grpc?: unknown
  initialDelaySeconds?: number
  periodSeconds?: number
  timeoutSeconds?: number
  successThreshold?: number
  failureThreshold?: number
}

export interface Container {
  name: string
  image?: string
  command?: string[]
  args?: string[]
  env?: EnvVar[]
  envFrom?: EnvSource[]
  workingDir?: string
  ports?: { name?: string; containerPort: number; protocol?: string }[]
  volumeMounts?: { name: string; mountPath: string; subPath?: string; readOnly?: boolean }[]
  resources?: { limits?: Record<string, string | number>; requests?: Record<string, string | number> }
  readinessProbe?: ProbeSpec
  livenessProbe?: ProbeSpec
  startupProbe?: ProbeSpec
}

export interface VolumeItem extends FieldSelector {
  key?: string
  path: string
  mode?: number
}

export interface FileSource {
  name?: string
  /** Only secret volumes say secretName; projected ones say name. */
  secretName?: string
  items?: VolumeItem[]
  optional?: boolean
  defaultMode?: number
}

export interface Volume {
  name: string
  configMap?: FileSource
  secret?: FileSource
  downwardAPI?: { items?: VolumeItem[] }
  projected?: {
    sources?: { configMap?: FileSource; secret?: FileSource; downwardAPI?: { items?: VolumeItem[] } }[]
  }
  emptyDir?: { medium?: string }
  persistentVolumeClaim?: { claimName: string }
}

export interface PodSpec {
  containers: Container[]
  initContainers?: Container[]
  volumes?: Volume[]
  terminationGracePeriodSeconds?: number
}

/** A Deployment or StatefulSet. */
export interface Workload extends Resource {
  spec?: {
    replicas?: number
    template?: {
      metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> }
      spec?: PodSpec
    }
    volumeClaimTemplates?: { metadata: { name: string } }[]
  }
  status?: Record<string, unknown>
}

export const POD_MANAGER = 'postern-pods'
/** Annotations under this prefix only hurry volumes along: they never replace a pod. */
export const SYNC_PREFIX = 'sync.postern.dev/'
export const TEMPLATE_HASH = 'postern.dev/template-hash'
/** More than any planner asks for; keeps a typing error from starting ten thousand processes. */
export const MAX_REPLICAS = 50

export function replicasOf(workload: Workload): number {
  const asked = workload.spec?.replicas ?? 1
  return Number.isInteger(asked) ? Math.min(Math.max(asked, 0), MAX_REPLICAS) : 1
}

export function podName(workload: Workload, index: number): string {
  return `${workload.metadata.name}-${index}`
}

/** The Pod object of one replica: what is applied, with the template's hash as an annotation. */
export function podOf(workload: Workload, index: number): Pod {
  const template = workload.spec?.template
  const name = podName(workload, index)
  const claims = (workload.spec?.volumeClaimTemplates ?? []).map((claim) => ({
    name: claim.metadata.name,
    persistentVolumeClaim: { claimName: `${claim.metadata.name}-${name}` },
  }))
  const spec = structuredClone(template?.spec ?? { containers: [] }) as PodSpec
  if (claims.length > 0) spec.volumes = [...(spec.volumes ?? []), ...claims]
  const annotations = template?.metadata?.annotations ?? {}
  const labels = template?.metadata?.labels ?? {}
  const counted = Object.entries(annotations).filter(([key]) => !key.startsWith(SYNC_PREFIX))
  const hash = hashOf({ labels, annotations: Object.fromEntries(counted), spec })
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      ...(workload.metadata.namespace === undefined ? {} : { namespace: workload.metadata.namespace }),
      labels: { ...labels },
      annotations: { ...annotations, [TEMPLATE_HASH]: hash },
      ownerReferences: [ownerReference(workload)],
    },
    spec: spec as unknown as Record<string, unknown>,
  }
}

export function specOf(pod: Pod): PodSpec {
  return (pod.spec ?? { containers: [] }) as unknown as PodSpec
}

/** Number of a port that is given by number, or by the name it has in a container. */
export function portOf(containers: readonly Container[], port: number | string): number | undefined {
  if (typeof port === 'number') return port
  if (/^\d{1,5}$/.test(port)) return Number(port)
  for (const container of containers) {
    const found = container.ports?.find((candidate) => candidate.name === port)
    if (found !== undefined) return found.containerPort
  }
  return undefined
}

function hashOf(value: unknown): string {
  return createHash('sha256').update(canonical(value)).digest('hex').slice(0, 16)
}

/** JSON with sorted members, so that the order in which an object was stored never restarts a pod. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`)
  return `{${members.join(',')}}`
}
