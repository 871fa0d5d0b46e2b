import { codeOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import { nearest } from '../../core/nearest.ts'
import { describeRef, type Kind, keyOf, type Ref, type Resource, refOf } from '../../core/resource.ts'
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
import { checkOwnership, controllerOf } from '../ownership.ts'
import { hasLabels, labelSelector } from '../scope.ts'
import type { Api } from './api.ts'
import { EventRecorder } from './events.ts'
import { FollowedByName } from './followed-by-name.ts'
import { digestOf, matches } from './matches.ts'
import { ReflectedCache } from './reflected-cache.ts'
import { Reflector, type ReflectorHooks } from './reflector.ts'
import { Written } from './written.ts'

/** On an owned object: digest of all that its owner applied, so that the same again costs no request. */
const APPLIED_ANNOTATION = 'postern.dev/applied'
const STATUS_WRITER = 'status'

export interface KubernetesOptions {
  log: Logger
  /** All kinds that are used; others are refused. */
  kinds: Kind[]
  /** Only these; default all. */
  namespaces?: string[]
  hooks?: ReflectorHooks
  /** Least life of a watch in seconds; one that hangs is noticed 15 s after its end. Default 240. */
  watchSeconds?: number
}

/** How a cache stands. */
export interface CacheState {
  /** Plural of the kind, and the namespace where only some are watched. */
  name: string
  synced: boolean
  /** Why it is not, or what is wrong with its watch. */
  error?: string
}

interface Followed {
  kind: Kind
  scope: Scope | undefined
  cache: ReflectedCache<Resource>
  reflectors: { name: string; reflector: Reflector<Resource> }[]
}

/**
 * The Cluster on an API server. Reads come from caches that watches keep; an answer to an own write is in them at once.
 * What caches hand out is shared: whoever wants to change an object copies it first.
 */
export class KubernetesCluster implements Cluster {
  readonly #api: Api
  readonly #options: KubernetesOptions
  readonly #kinds = new Map<string, Kind>()
  readonly #followed = new Map<string, Followed>()
  readonly #named = new Map<string, FollowedByName<Resource>>()
  readonly #events: EventRecorder
  readonly #written = new Written()

  constructor(api: Api, options: KubernetesOptions) {
    this.#api = api
    this.#options = options
    for (const kind of [EVENT, ...options.kinds]) this.#kinds.set(idOf(kind), kind)
    this.#events = new EventRecorder(api, options.log)
  }

  cache<T extends Resource>(kind: Kind<T>, scope?: Scope): Cache<T> {
    const known = this.#known(kind)
    const id = `${idOf(kind)} ${labelSelector(scope)}`
    let followed = this.#followed.get(id)
    if (followed === undefined) {
      followed = this.#follow(known, scope)
      this.#followed.set(id, followed)
    }
    return followed.cache as unknown as Cache<T>
  }

  named<T extends Resource>(kind: Kind<T>): NamedCache<T> {
    const known = this.#known(kind)
    let named = this.#named.get(idOf(known))
    if (named === undefined) {
      named = new FollowedByName(this.#api, known, this.#options.log)
      this.#named.set(idOf(known), named)
    }
    return named as unknown as NamedCache<T>
  }

  async get<T extends Resource>(
    kind: Kind<T>,
    ref: { namespace?: string; name: string },
  ): Promise<T | undefined> {
    try {
      return await this.#api.get(this.#known(kind) as Kind<T>, ref)
    } catch (error) {
      if (codeOf(error) === 'NotFound') return undefined
      throw error
    }
  }

  async apply(object: Resource, manager: FieldManager): Promise<Applied> {
    const kind = this.#check(object)
    const { status: _, ...rest } = object
    const digest = digestOf(rest)
    const owned = controllerOf(object) !== undefined
    const wanted: Resource = owned ? annotated(rest as Resource, digest) : (rest as Resource)
    const cached = this.#cached(kind, keyOf(object))
    if (cached !== undefined && this.#isApplied(cached, wanted, digest, manager)) return 'unchanged'
    const existing = cached ?? (owned ? await this.#look(kind, object) : undefined)
    checkOwnership(object, existing)
    // With its UID: an object that was deleted meanwhile is not made anew in passing, nor another one touched.
    const pinned = existing === undefined ? wanted : withUid(wanted, existing.metadata.uid)
    const last = this.#written.get(object, manager)
    const before = existing?.metadata.resourceVersion ?? last?.resourceVersion
    const answer = await this.#api.apply(kind, pinned, { fieldManager: manager })
    this.#take(kind, answer.object)
    this.#written.set(object, manager, digest, answer.object)
    if (answer.created) return 'created'
    return answer.object.metadata.resourceVersion === before ? 'unchanged' : 'changed'
  }

  async create(object: Resource, manager: FieldManager): Promise<Resource> {
    const kind = this.#check(object)
    const { status: _, ...rest } = object
    const created = await this.#api.create(kind, rest as Resource, { fieldManager: manager })
    this.#take(kind, created)
    return created
  }

  async applyStatus(patch: StatusPatch, manager: FieldManager): Promise<Applied> {
    const { ref, status } = patch
    const kind = this.#known(ref)
    const { namespace, name } = ref
    const object: Resource = {
      apiVersion: kind.apiVersion,
      kind: kind.kind,
      metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
      status,
    }
    const cached = this.#cached(kind, keyOf(object))
    // Both ways: a field that is no longer wanted has to go.
    if (cached !== undefined && matches(status, cached.status) && matches(cached.status, status))
      return 'unchanged'
    const before =
      cached?.metadata.resourceVersion ?? this.#written.get(object, STATUS_WRITER)?.resourceVersion
    const pinned = cached === undefined ? object : withUid(object, cached.metadata.uid)
    const answer = await this.#api.apply(kind, pinned, { fieldManager: manager, subresource: 'status' })
    this.#take(kind, answer.object)
    // What a cache has needs no memory of its own: there are many of them.
    if (cached === undefined) this.#written.set(object, STATUS_WRITER, '', answer.object)
    return answer.object.metadata.resourceVersion === before ? 'unchanged' : 'changed'
  }

  async remove(ref: Ref, preconditions?: Preconditions): Promise<void> {
    await this.#api.remove(this.#known(ref), ref, preconditions)
  }

  note(event: EventNote): void {
    this.#events.note(event)
  }

  /** How each cache stands, for readiness. */
  states(): CacheState[] {
    return [...this.#followed.values()].flatMap(({ reflectors }) =>
      reflectors.map(({ name, reflector }) => {
        const { synced, error } = reflector.state
        return { name, synced, ...(error === undefined ? {} : { error }) }
      }),
    )
  }

  /** Writes the events that wait, within a few seconds, and ends all watches. The connection stays the caller's. */
  async close(): Promise<void> {
    await this.#events.close()
    await Promise.all([...this.#named.values()].map((named) => named.close()))
    const reflectors = [...this.#followed.values()].flatMap((followed) => followed.reflectors)
    await Promise.all(reflectors.map(({ reflector }) => reflector.close()))
  }

  #follow(kind: Kind, scope: Scope | undefined): Followed {
    const { log, namespaces, hooks, watchSeconds } = this.#options
    const selector = labelSelector(scope)
    const scopes = kind.namespaced && namespaces !== undefined ? namespaces : [undefined]
    const cache = new ReflectedCache<Resource>(kind)
    const reflectors = scopes.map((namespace) => {
      const selection = {
        ...(namespace === undefined ? {} : { namespace }),
        ...(selector === '' ? {} : { labelSelector: selector }),
      }
      const reflector = new Reflector<Resource>({
        api: this.#api,
        kind,
        selection,
        cache,
        log,
        ...(hooks === undefined ? {} : { hooks }),
        ...(watchSeconds === undefined ? {} : { watchSeconds }),
      })
      reflector.start()
      return { name: namespace === undefined ? kind.plural : `${kind.plural} in ${namespace}`, reflector }
    })
    cache.subscribe(({ before, after }) => {
      if (before !== undefined && after === undefined) this.#written.forget(before)
    })
    return { kind, scope, cache, reflectors }
  }

  #cached(kind: Kind, key: string): Resource | undefined {
    for (const followed of this.#followed.values()) {
      if (idOf(followed.kind) !== idOf(kind)) continue
      const found = followed.cache.get(key)
      if (found !== undefined) return found
    }
    return undefined
  }

  /** Whether the server has it already: by what was written last, or, for owned objects after a restart, by its digest. */
  #isApplied(cached: Resource, wanted: Resource, digest: string, manager: FieldManager): boolean {
    const memory = this.#written.get(wanted, manager)
    const same =
      memory === undefined
        ? cached.metadata.annotations?.[APPLIED_ANNOTATION] === digest
        : memory.digest === digest
    if (!same) return false
    return memory?.resourceVersion === cached.metadata.resourceVersion || matches(wanted, cached)
  }

  /** A live look at what no cache holds: it may be somebody else's. */
  async #look(kind: Kind, object: Resource): Promise<Resource | undefined> {
    try {
      return await this.#api.get(kind, object.metadata, { metadataOnly: true })
    } catch (error) {
      if (codeOf(error) === 'NotFound') return undefined
      throw error
    }
  }

  /** Read your writes: an answer goes to every cache whose scope it is in. */
  #take(kind: Kind, object: Resource): void {
    for (const followed of this.#followed.values()) {
      if (idOf(followed.kind) === idOf(kind) && this.#inScope(followed, object)) followed.cache.take(object)
    }
  }

  #inScope({ scope }: Followed, object: Resource): boolean {
    const { namespaces } = this.#options
    const { namespace } = object.metadata
    if (namespaces !== undefined && namespace !== undefined && !namespaces.includes(namespace)) return false
    return scope === undefined || hasLabels(object, scope)
  }

  #check(object: Resource): Kind {
    const kind = this.#known(object)
    const namespace = object.metadata.namespace ?? ''
    if (kind.namespaced === (namespace !== '')) return kind
    const what = describeRef(refOf(object))
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

function annotated(object: Resource, digest: string): Resource {
  const annotations = { ...object.metadata.annotations, [APPLIED_ANNOTATION]: digest }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

function withUid(object: Resource, uid: string | undefined): Resource {
  if (uid === undefined || object.metadata.uid !== undefined) return object
  return { ...object, metadata: { ...object.metadata, uid } }
}
