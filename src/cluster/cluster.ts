import type { Kind, Ref, Resource } from '../core/resource.ts'

/**
 * All that a controller ever sees of a cluster. `embedded/` and `kubernetes/` implement it; nothing above knows which
 * of the two it runs on.
 */
export interface Cluster {
  /** Shared by all who ask for the same kind and scope; `ready` settles once its first list is in. */
  cache<T extends Resource>(kind: Kind<T>, scope?: Scope): Cache<T>
  /** Single objects, each followed by its name: for what must not be listed, such as users' Secrets. Shared. */
  named<T extends Resource>(kind: Kind<T>): NamedCache<T>
  /** A live read, for what must not be stale. */
  get<T extends Resource>(kind: Kind<T>, ref: { namespace?: string; name: string }): Promise<T | undefined>
  /**
   * Server-side apply, forced, of everything but status. Writes nothing when the object already matches. A
   * `metadata.uid` or `metadata.resourceVersion` is a precondition: `ClusterError` `Conflict` when it does not hold.
   * With a controlling owner it never takes over what that owner does not have: `ClusterError` `Taken`.
   */
  apply(object: Resource, manager: FieldManager): Promise<Applied>
  /** Creates, and never overwrites: `ClusterError` with code `AlreadyExists` when it is there. */
  create(object: Resource, manager: FieldManager): Promise<Resource>
  /** Replaces the status of an object; `ClusterError` `NotFound` when it is gone. Conditions merge by type. */
  applyStatus(patch: StatusPatch, manager: FieldManager): Promise<Applied>
  /** Deletes; nothing to delete is fine. `ClusterError` `Conflict` when a precondition does not hold. */
  remove(ref: Ref, preconditions?: Preconditions): Promise<void>
  /** An event on an object: aggregated, rate limited, never in the way (no promise, no error). */
  note(event: EventNote): void
}

/** On an object that is kept in a manifests folder: the file, relative to the folder. */
export const SOURCE_ANNOTATION = 'postern.dev/source'

/** Which objects of a kind a cache holds. */
export interface Scope {
  /** Labels, all of which an object has. */
  labels: Record<string, string>
}

/** Who owns which fields, e.g. `postern/tor`. */
export type FieldManager = string

export type Applied = 'created' | 'changed' | 'unchanged'

export interface Preconditions {
  uid?: string
  resourceVersion?: string
}

export interface StatusPatch {
  ref: Ref
  status: Record<string, unknown>
}

export interface EventNote {
  about: Ref & { uid?: string }
  type: 'Normal' | 'Warning'
  /** CamelCase, unique for the situation. */
  reason: string
  message: string
}

export interface CacheChange<T extends Resource> {
  key: string
  before?: T
  after?: T
}

export interface Cache<T extends Resource> {
  readonly ready: Promise<void>
  get(key: string): T | undefined
  list(namespace?: string): T[]
  /** Objects under a value of an index made with `index`. */
  by(index: string, value: string): T[]
  /** Declares an index; the same name twice is the same index. */
  index(name: string, values: (object: T) => string[]): void
  /** Calls back after each change (and once for each object that is there already). Returns the way to stop. */
  subscribe(listener: (change: CacheChange<T>) => void): () => void
}

export interface NamedCache<T extends Resource> {
  /** Follows an object from now on; again is nothing. */
  want(key: string): void
  drop(key: string): void
  /** What is known of an object that is wanted; undefined until it was looked at for the first time. */
  get(key: string): Named<T> | undefined
  /** Calls back with the key after each change of what `get` says. Returns the way to stop. */
  subscribe(listener: (key: string) => void): () => void
}

/** An object, or that there is none, or why it cannot be read. */
export type Named<T extends Resource> = { object: T } | { object?: undefined; error?: string }
