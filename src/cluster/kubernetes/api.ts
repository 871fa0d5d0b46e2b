import type { Kind, Ref, Resource } from '../../core/resource.ts'
import type { Preconditions } from '../cluster.ts'

/**
 * The API server as the rest of this folder sees it: the verbs, and nothing of HTTP. Each fails with an `ApiError`
 * (a `ClusterError` with HTTP status, the server's reason, and how long it asks to wait).
 */
export interface Api {
  get<T extends Resource>(kind: Kind<T>, ref: Named, options?: Reading): Promise<T>
  list<T extends Resource>(kind: Kind<T>, options?: Listing): Promise<Page<T>>
  /**
   * Follows changes until the server ends the watch. An ERROR event is thrown as the `ApiError` that it carries, and so
   * is a line that is too long or no JSON.
   */
  watch<T extends Resource>(kind: Kind<T>, options: Watching): AsyncIterable<WatchEvent<T>>
  create<T extends Resource>(kind: Kind<T>, object: T, options: Writing): Promise<T>
  /** Server-side apply, forced. `subresource: 'status'` for the status alone. */
  apply<T extends Resource>(
    kind: Kind<T>,
    object: T,
    options: Writing & { subresource?: 'status' },
  ): Promise<{ object: T; created: boolean }>
  /** Deletes in the background. */
  remove(kind: Kind, ref: Named, preconditions?: Preconditions): Promise<void>
  /** `major.minor.patch` as the server says it, e.g. `v1.37.2`. */
  version(): Promise<string>
  close(): Promise<void>
}

export type Named = Pick<Ref, 'namespace' | 'name'>

export interface Reading {
  /** Only metadata (`PartialObjectMetadata`). */
  metadataOnly?: boolean
  signal?: AbortSignal
}

/** What of a kind is looked at. Without a namespace: all of them. */
export interface Selection {
  namespace?: string
  /** As in the API: `a=b,c!=d`. */
  labelSelector?: string
  /** As in the API: `metadata.name=x`. */
  fieldSelector?: string
}

export interface Listing extends Reading, Selection {
  limit?: number
  continue?: string
  /** `0`: any version that the server's cache has. */
  resourceVersion?: string
}

export interface Page<T extends Resource> {
  items: T[]
  resourceVersion: string
  /** Token of the next page; undefined on the last one. */
  continue?: string
}

export interface Watching extends Reading, Selection {
  resourceVersion: string
  /** After which the server ends the watch in order. */
  timeoutSeconds: number
  /** Called once the server has accepted the watch: a quiet one may say nothing for a minute. */
  opened?: () => void
}

export type WatchEvent<T extends Resource> =
  | { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: T }
  | { type: 'BOOKMARK'; resourceVersion: string }

export interface Writing {
  fieldManager: string
  signal?: AbortSignal
}
