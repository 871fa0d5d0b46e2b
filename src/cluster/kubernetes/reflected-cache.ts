import { type Kind, keyOf, type Resource } from '../../core/resource.ts'
import { ObjectCache } from '../object-cache.ts'
import type { WatchEvent } from './api.ts'
import { isNewer, isVersion } from './resource-version.ts'
import { type Transform, trimmed } from './trim.ts'

const TYPES: ReadonlySet<string> = new Set(['ADDED', 'MODIFIED', 'DELETED'])

export interface ReflectedCacheOptions<T extends Resource> {
  /** Keeps `apiVersion`, `kind` and `metadata` alone, and has the reflectors ask for no more. */
  metadataOnly?: boolean
  /** What else a kind does without. Assigns undefined rather than to delete: see `trimmed`. */
  transform?: Transform<T>
}

/**
 * The objects of an API server that reflectors follow, one source each, and the answers to own writes. What it hands
 * out is not frozen, since that costs too much at 10,000 objects, but it is to be read only.
 *
 * An object never goes back to an older version, whoever brings it.
 */
export class ReflectedCache<T extends Resource> extends ObjectCache<T> {
  readonly metadataOnly: boolean
  readonly #kind: Kind<T>
  readonly #transform: Transform<T> | undefined
  readonly #sources: State[] = []
  readonly #synced: () => void

  constructor(kind: Kind<T>, options: ReflectedCacheOptions<T> = {}) {
    const { promise, resolve } = Promise.withResolvers<void>()
    super(kind.kind, promise)
    this.#synced = resolve
    this.#kind = kind
    this.#transform = options.transform
    this.metadataOnly = options.metadataOnly ?? false
  }

  /**
   * A place that objects come from: the watch of a namespace, or of all. Its list says nothing of the objects of
   * others. `ready` settles once all sources that there are then have had their first list: make them all before the
   * first is heard of.
   *
   * @throws Error when another source has the same namespace
   */
  source(namespace?: string): Source<T> {
    const taken = this.#sources.find(
      (other) => (other.namespace ?? namespace) === (namespace ?? other.namespace),
    )
    if (taken !== undefined) {
      const where = taken.namespace ?? namespace ?? 'all namespaces'
      throw new Error(`two reflectors bring ${this.#kind.plural} of ${where} to one cache: give each its own`)
    }
    const source: State = { namespace, seen: undefined }
    this.#sources.push(source)
    return {
      event: (event) => this.#event(source, event),
      relist: () => {
        const listed = new Map<string, T>()
        return {
          add: (items) => this.#add(listed, items),
          commit: (version) => this.#commit(source, listed, version),
        }
      },
    }
  }

  /**
   * Takes over the API server's answer to an own write, so that it is read before the watch brings it. The caller sees
   * to it that the object is one that the sources select by label or field.
   */
  take(object: T): void {
    if (!isSensible(object)) return
    const { namespace } = object.metadata
    const source = this.#sources.find((one) => (one.namespace ?? namespace) === namespace)
    if (source !== undefined && this.#isFresh(source, object)) this.put(this.#trimmed(object))
  }

  #event(source: State, event: WatchEvent<T>): string | undefined {
    if (event.type === 'BOOKMARK') {
      return isVersion(event.resourceVersion) ? see(source, event.resourceVersion) : undefined
    }
    const { type, object } = event
    if (!TYPES.has(type) || !isSensible(object)) return undefined
    if (this.#isFresh(source, object)) {
      if (type === 'DELETED') this.delete(keyOf(object))
      else this.put(this.#trimmed(object))
    }
    return see(source, object.metadata.resourceVersion)
  }

  /** Newer than what is held. What is not held, and no newer than what the watch has passed, was deleted meanwhile. */
  #isFresh(source: State, object: Versioned<T>): boolean {
    const known = this.get(keyOf(object))?.metadata.resourceVersion ?? source.seen
    return isNewer(object.metadata.resourceVersion, known)
  }

  /** Of an object that is held in this version already the list keeps that one: a relist costs a page, not a world. */
  #add(listed: Map<string, T>, items: T[]): number {
    let skipped = 0
    for (const item of items) {
      if (isSensible(item)) {
        const key = keyOf(item)
        const held = this.get(key)
        const same = held?.metadata.resourceVersion === item.metadata.resourceVersion
        listed.set(key, same && held !== undefined ? held : this.#trimmed(item))
      } else skipped++
    }
    return skipped
  }

  #commit(source: State, listed: Map<string, T>, version: string): void {
    // A list that is older than what was seen is of a server whose data was restored: there all is as it says.
    const back = source.seen !== undefined && isNewer(source.seen, version)
    const puts: T[] = []
    for (const [key, object] of listed) {
      if (back || isNewer(versionOf(object), this.get(key)?.metadata.resourceVersion)) puts.push(object)
    }
    const gone: string[] = []
    for (const held of this.list(source.namespace)) {
      const key = keyOf(held)
      // What is newer than the list is an own write: the watch will come to it.
      if (!listed.has(key) && (back || !isNewer(versionOf(held), version))) gone.push(key)
    }
    source.seen = version
    this.change(puts, gone)
    if (this.#sources.every(({ seen }) => seen !== undefined)) this.#synced()
  }

  #trimmed(object: T): T {
    return trimmed(object, this.metadataOnly, this.#transform)
  }
}

/** Where a reflector puts what it hears. */
export interface Source<T extends Resource> {
  /** Takes over a watch event. Returns the version up to which all is known now; undefined when it makes no sense. */
  event(event: WatchEvent<T>): string | undefined
  /** Begins a list. Nothing of it is seen before it is committed; one that is not is forgotten. */
  relist(): Relist<T>
}

export interface Relist<T extends Resource> {
  /** Takes over the items of a page. Returns how many of them made no sense. */
  add(items: T[]): number
  /** Replaces all objects of the source. */
  commit(version: string): void
}

interface State {
  namespace: string | undefined
  /** Newest version that its list or its watch told; undefined before the first list. */
  seen: string | undefined
}

type Versioned<T extends Resource> = T & { metadata: { resourceVersion: string } }

/** All that is held has one. */
function versionOf(object: Resource): string {
  return object.metadata.resourceVersion ?? '0'
}

function see(source: State, version: string): string {
  if (isNewer(version, source.seen)) source.seen = version
  return source.seen ?? version
}

function isSensible<T extends Resource>(object: T): object is Versioned<T> {
  const metadata: unknown = (object as T | null | undefined)?.metadata
  if (typeof metadata !== 'object' || metadata === null) return false
  const { name, namespace, resourceVersion } = metadata as Record<string, unknown>
  if (typeof name !== 'string' || name === '' || !isVersion(resourceVersion)) return false
  return namespace === undefined || typeof namespace === 'string'
}
