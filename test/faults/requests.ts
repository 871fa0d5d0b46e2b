import type { IncomingMessage } from 'node:http'

/** What a request to an API server is about, read from its method and path. */
export interface ApiCall {
  /** As in audit logs, but for `apply` (any PATCH) and `status` (a PATCH of the status). */
  verb: 'get' | 'list' | 'watch' | 'create' | 'apply' | 'status' | 'delete' | 'other'
  /** Lower case, as in the path; for what is no object, the whole path. */
  plural: string
  namespace?: string
  name?: string
}

export interface SeenCall extends ApiCall {
  /** `performance.now()` at its begin. */
  at: number
  /** HTTP status; 0 while there is none, and when there never was one. */
  status: number
}

export const WRITES: ReadonlySet<string> = new Set(['create', 'apply', 'status', 'delete'])

export function callOf({ method = '', url = '' }: Pick<IncomingMessage, 'method' | 'url'>): ApiCall {
  const { pathname, searchParams } = new URL(url, 'https://proxy')
  const parts = pathname.split('/').filter((part) => part !== '')
  const rest = parts[0] === 'api' ? parts.slice(2) : parts[0] === 'apis' ? parts.slice(3) : []
  const place = rest[0] === 'namespaces' && rest.length > 2 ? rest[1] : undefined
  const [plural, name, subresource] = place === undefined ? rest : rest.slice(2)
  if (plural === undefined) return { verb: 'other', plural: pathname }
  return {
    verb: verbOf(method, name !== undefined, searchParams.has('watch'), subresource),
    plural,
    ...(place === undefined ? {} : { namespace: place }),
    ...(name === undefined ? {} : { name }),
  }
}

function verbOf(method: string, named: boolean, watch: boolean, subresource?: string): ApiCall['verb'] {
  if (method === 'GET') return watch ? 'watch' : named ? 'get' : 'list'
  if (method === 'POST') return 'create'
  if (method === 'DELETE') return 'delete'
  if (method !== 'PATCH') return 'other'
  return subresource === 'status' ? 'status' : 'apply'
}

/** `apply configmaps a/tor-topology (201)`, for messages. */
export function describeCall({ verb, plural, namespace, name, status }: SeenCall): string {
  const object = [namespace, name].filter((part) => part !== undefined).join('/')
  return `${verb} ${plural} ${object} (${status})`
}
