import { nearest } from '../../core/nearest.ts'
import type { Kind, Ref, Resource } from '../../core/resource.ts'
import type {
  Applied,
  Cache,
  Cluster,
  EventNote,
  FieldManager,
  NamedCache,
  Preconditions,
  Scope,
  StatusPatch,
} from '../cluster.ts'
import { ClusterError } from '../errors.ts'
import { EVENT } from '../kinds.ts'
import { labelSelector } from '../scope.ts'
import { EmbeddedCache } from './cache.ts'
import { EventRecorder } from './events.ts'
import { EmbeddedNamed } from './named.ts'
import type { Store } from './store.ts'

/** The Cluster on a store of this machine. Caches are as of the last commit; what they hand out is frozen. */
export class EmbeddedCluster implements Cluster {
  readonly #store: Store
  readonly #kinds = new Map<string, Kind>()
  /** By kind, then by scope. */
  readonly #caches = new Map<string, Map<string, EmbeddedCache<Resource>>>()
  readonly #named = new Map<string, NamedCache<Resource>>()
  readonly #events: EventRecorder
  readonly #stop: () => void

  /** @param kinds all kinds there are; those of others are refused, as by an API server without their CRD */
  constructor(store: Store, kinds: Kind[], options: { now?: () => number } = {}) {
    this.#store = store
    for (const kind of [EVENT, ...kinds]) this.#kinds.set(idOf(kind), kind)
    this.#events = new EventRecorder(store, options.now)
    this.#stop = store.watch({
      changed: (change) => {
        for (const cache of this.#caches.get(idOf(change.ref))?.values() ?? []) cache.take(change)
      },
      resync: () => {
        for (const scopes of this.#caches.values()) for (const cache of scopes.values()) cache.relist()
      },
    })
  }

  cache<T extends Resource>(kind: Kind<T>, scope?: Scope): Cache<T> {
    const known = this.#known(kind)
    const scopes = this.#caches.get(idOf(kind)) ?? new Map<string, EmbeddedCache<Resource>>()
    this.#caches.set(idOf(kind), scopes)
    let cache = scopes.get(labelSelector(scope))
    if (cache === undefined) {
      cache = new EmbeddedCache(this.#store, known, scope)
      scopes.set(labelSelector(scope), cache)
    }
    return cache as unknown as Cache<T>
  }

  named<T extends Resource>(kind: Kind<T>): NamedCache<T> {
    let named = this.#named.get(idOf(kind))
    if (named === undefined) {
      named = new EmbeddedNamed(this.cache(kind))
      this.#named.set(idOf(kind), named)
    }
    return named as unknown as NamedCache<T>
  }

  async get<T extends Resource>(
    kind: Kind<T>,
    ref: { namespace?: string; name: string },
  ): Promise<T | undefined> {
    const { apiVersion, kind: name } = this.#known(kind)
    return this.#store.get({ ...ref, apiVersion, kind: name }) as T | undefined
  }

  async apply(object: Resource, manager: FieldManager): Promise<Applied> {
    this.#check(object)
    return this.#store.apply(object, manager).result
  }

  async create(object: Resource, manager: FieldManager): Promise<Resource> {
    this.#check(object)
    return this.#store.create(object, manager)
  }

  async applyStatus(patch: StatusPatch, manager: FieldManager): Promise<Applied> {
    this.#known(patch.ref)
    return this.#store.applyStatus(patch, manager).result
  }

  async remove(ref: Ref, preconditions?: Preconditions): Promise<void> {
    this.#known(ref)
    this.#store.remove(ref, preconditions)
  }

  note(event: EventNote): void {
    this.#events.note(event)
  }

  /** Writes the events that wait, and stops following the store, which stays open. */
  close(): void {
    this.#events.flush()
    this.#stop()
  }

  #check(object: Resource): void {
    const kind = this.#known(object)
    const namespace = object.metadata?.namespace ?? ''
    if (kind.namespaced === (namespace !== '')) return
    const what = `${kind.kind} ${object.metadata?.name}`
    const message = kind.namespaced
      ? `${what} needs a metadata.namespace`
      : `${what} has no namespace: leave metadata.namespace out`
    throw new ClusterError('Invalid', message)
  }

  #known(wanted: { apiVersion: string; kind: string }): Kind {
    const kind = this.#kinds.get(idOf(wanted))
    if (kind !== undefined) return kind
    const hint = nearest(idOf(wanted), this.#kinds.keys())
    const text = `there is no kind ${idOf(wanted)}${hint === undefined ? '' : `: did you mean ${hint}?`}`
    throw new ClusterError('NotFound', text)
  }
}

function idOf({ apiVersion, kind }: { apiVersion: string; kind: string }): string {
  return `${apiVersion} ${kind}`
}
