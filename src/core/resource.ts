/** Shapes that every Kubernetes object shares, as far as Postern reads or writes them. Unknown fields survive. */

export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

export interface Metadata {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  /** RFC 3339, UTC, whole seconds. */
  creationTimestamp?: string
  deletionTimestamp?: string
  finalizers?: string[]
  labels?: Record<string, string>
  annotations?: Record<string, string>
  ownerReferences?: OwnerReference[]
}

export interface Resource {
  apiVersion: string
  kind: string
  metadata: Metadata
  [field: string]: unknown
}

/** What the cluster knows of a kind. `T` only carries the type of its objects. */
export interface Kind<T extends Resource = Resource> {
  apiVersion: string
  kind: string
  /** Lower case, as in URLs and on the command line. */
  plural: string
  shortNames?: string[]
  namespaced: boolean
  /** Never set: makes the type of the objects part of the kind. */
  readonly _type?: T
}

export interface Ref {
  apiVersion: string
  kind: string
  namespace?: string
  name: string
}

/** `namespace/name`, or `name` for what has no namespace: the key of queues and caches. */
export function keyOf(object: { metadata: { namespace?: string; name: string } }): string {
  return keyFor(object.metadata.namespace, object.metadata.name)
}

export function keyFor(namespace: string | undefined, name: string): string {
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`
}

export function splitKey(key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/')
  return slash < 0
    ? { namespace: '', name: key }
    : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}

export function refOf(object: Resource): Ref {
  const { namespace, name } = object.metadata
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    name,
    ...(namespace === undefined ? {} : { namespace }),
  }
}

/** `Kind namespace/name`, for messages. */
export function describeRef(ref: Ref): string {
  return `${ref.kind} ${keyFor(ref.namespace, ref.name)}`
}

/** An owner reference that makes the cluster delete the child with its owner. */
export function ownerReference(owner: Resource): OwnerReference {
  return {
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    name: owner.metadata.name,
    uid: owner.metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  }
}

/** Deep equality of JSON values; the order of members does not count. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => sameJson(item, b[index]))
  }
  const left = definedEntries(a)
  const right = b as Record<string, unknown>
  if (left.length !== definedEntries(right).length) return false
  return left.every(([key, value]) => Object.hasOwn(right, key) && sameJson(value, right[key]))
}

function definedEntries(object: object): [string, unknown][] {
  return Object.entries(object).filter(([, value]) => value !== undefined)
}
