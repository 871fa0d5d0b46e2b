import type { Kind } from '../../core/resource.ts'
import { ClusterError } from '../errors.ts'

/**
 * Path of a kind's objects, or of one of them.
 *
 * @param namespace of an object, or to list; without it, all namespaces
 * @throws ClusterError `Invalid` for a name that the API does not allow
 */
export function apiPath(
  kind: Kind,
  namespace: string | undefined,
  name?: string,
  subresource?: string,
): string {
  const root = kind.apiVersion.includes('/') ? '/apis' : '/api'
  const parts = [root, ...kind.apiVersion.split('/').map((part) => segment(kind, part))]
  if (kind.namespaced && namespace !== undefined && namespace !== '') {
    parts.push('namespaces', segment(kind, namespace))
  } else if (kind.namespaced && name !== undefined) {
    throw new ClusterError('Invalid', `${kind.kind} ${name}: has no namespace: set metadata.namespace`)
  }
  parts.push(segment(kind, kind.plural))
  if (name !== undefined) parts.push(segment(kind, name))
  if (subresource !== undefined) parts.push(subresource)
  return parts.join('/')
}

/** A query of those parameters that are set, with its `?`. */
export function queryOf(parameters: Record<string, string | number | boolean | undefined>): string {
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(parameters)) {
    if (value !== undefined) query.set(key, String(value))
  }
  return query.size === 0 ? '' : `?${query}`
}

/** As Kubernetes itself: no name leads out of its place in the path. */
function segment(kind: Kind, text: string): string {
  if (text !== '' && text !== '.' && text !== '..' && !/[/%]/.test(text)) return encodeURIComponent(text)
  throw new ClusterError('Invalid', `${kind.kind}: '${text}' cannot be a name in the API: choose another`)
}
