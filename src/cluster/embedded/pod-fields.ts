import { availableParallelism, totalmem } from 'node:os'
import { PosternError } from '../../core/errors.ts'
import { parseQuantity } from '../../core/quantity.ts'
import type { Pod } from '../kinds.ts'
import { type Container, type FieldSelector, specOf } from './pod-template.ts'

/** What a container's environment or a downward API file may say of its own pod. */
export interface PodFacts {
  pod: Pod
  address: string
}

/** The reason with which the kubelet, and we, hold back a container whose configuration does not resolve. */
export const CONFIG_ERROR = 'CreateContainerConfigError'

export function configError(message: string): PosternError {
  return new PosternError(CONFIG_ERROR, message)
}

/**
 * The value of a `fieldRef` or `resourceFieldRef` (Kubernetes downward API).
 *
 * @throws PosternError CreateContainerConfigError for a field that local pods do not have
 */
export function fieldValue(selector: FieldSelector, facts: PodFacts, container?: Container): string {
  if (selector.fieldRef !== undefined) return podField(selector.fieldRef.fieldPath, facts)
  const resource = selector.resourceFieldRef
  if (resource === undefined) {
    throw configError('A downward API item needs fieldRef or resourceFieldRef. Add one of them.')
  }
  const named = specOf(facts.pod).containers.find(({ name }) => name === resource.containerName) ?? container
  const [group, name] = resource.resource.split('.')
  if ((group !== 'limits' && group !== 'requests') || (name !== 'memory' && name !== 'cpu')) {
    throw configError(
      `resourceFieldRef "${resource.resource}" is not known here. Use limits.memory or limits.cpu.`,
    )
  }
  const set = named?.resources?.[group]?.[name] ?? named?.resources?.limits?.[name]
  const value =
    set === undefined ? (name === 'memory' ? totalmem() : availableParallelism()) : quantity(String(set))
  const divisor = resource.divisor === undefined ? 1 : quantity(String(resource.divisor))
  return String(Math.ceil(value / (divisor > 0 ? divisor : 1)))
}

function podField(path: string, { pod, address }: PodFacts): string {
  const { metadata } = pod
  const keyed = /^metadata\.(labels|annotations)\['([^']+)'\]$/.exec(path)
  if (keyed !== null) return metadata[keyed[1] as 'labels' | 'annotations']?.[keyed[2]!] ?? ''
  switch (path) {
    case 'metadata.name':
      return metadata.name
    case 'metadata.namespace':
      return metadata.namespace ?? ''
    case 'metadata.uid':
      return metadata.uid ?? ''
    case 'metadata.labels':
      return lines(metadata.labels)
    case 'metadata.annotations':
      return lines(metadata.annotations)
    case 'status.podIP':
    case 'status.podIPs':
      return address
    case 'status.hostIP':
      return '127.0.0.1'
    case 'spec.nodeName':
      return 'local'
    case 'spec.serviceAccountName':
      return String(pod.spec?.serviceAccountName ?? 'default')
    default:
      throw configError(
        `fieldRef "${path}" is not known here. Use metadata.name, .namespace, .uid or status.podIP.`,
      )
  }
}

function lines(map: Record<string, string> | undefined): string {
  return Object.entries(map ?? {})
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join('\n')
}

/**
 * A Kubernetes quantity (`128Mi`, `1.5G`, `250m`) in base units: bytes or cores.
 *
 * @throws PosternError CreateContainerConfigError
 */
export function quantity(text: string): number {
  const value = parseQuantity(text)
  if (value === undefined) {
    throw configError(`"${text.slice(0, 40)}" is no quantity. Write it like 128Mi or 250m.`)
  }
  return value
}
