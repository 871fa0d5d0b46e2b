import { type Kind, keyFor, keyOf, type Resource } from '../../core/resource.ts'
import type { ClusterErrorCode } from '../errors.ts'
import type { Api, Listing, Page, Selection, WatchEvent, Watching } from './api.ts'
import { ApiError } from './api-error.ts'

export const DOOR: Kind = {
  apiVersion: 'test.postern.dev/v1',
  kind: 'Door',
  plural: 'doors',
  namespaced: true,
}

interface Entry {
  version: number
  event: { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: Resource }
}

interface Watch {
  options: Watching
  /** Ends it, in order or with an error. */
  end(error?: unknown): void
  say(event: WatchEvent<Resource>): void
}

export function refusal(
  code: ClusterErrorCode,
  status: number,
  facts: { retryAfter?: number } = {},
): ApiError {
  return new ApiError(code, `refused with ${status}`, { status, reason: '', ...facts })
}

export const gone = (): ApiError => refusal('Gone', 410)

/** As after a reset, or with one of our own reasons. */
export function unanswered(reason = 'NoAnswer'): ApiError {
  return new ApiError('Unavailable', `no answer (${reason})`, { status: 0, reason })
}

/**
 * Objects with versions, lists in pages and watches, as far as a reflector sees them. Faults, and when pages and events
 * arrive, are up to the test.
 */
export class FakeServer {
  readonly objects: Map<string, Resource> = new Map()
  readonly lists: Listing[] = []
  readonly watches: Watching[] = []
  /** Each is what the next list or watch fails with. */
  readonly listFaults: unknown[] = []
  readonly watchFaults: unknown[] = []
  readonly open: Set<Watch> = new Set()
  pageSize = 2
  revision: number
  /** Pages wait until they are let through. */
  holdPages = false
  /** How many changes have reached the watches. */
  #visible = Number.POSITIVE_INFINITY
  #compacted = 0
  readonly #log: Entry[] = []
  readonly #snapshots = new Map<string, Resource[]>()
  #uids = 0
  #pages: (() => void)[] = []
  #wakers = new Set<() => void>()

  constructor(revision = 97) {
    this.revision = revision
  }

  readonly api: Pick<Api, 'list' | 'watch'> = {
    list: <T extends Resource>(_kind: Kind<T>, options: Listing = {}) =>
      this.#list(options) as unknown as Promise<Page<T>>,
    watch: <T extends Resource>(_kind: Kind<T>, options: Watching) =>
      this.#watch(options) as unknown as AsyncIterable<WatchEvent<T>>,
  }

  /** Creates or changes; returns the server's answer. */
  put(name: string, spec: unknown, metadata: object = {}, namespace = 'one'): Resource {
    const key = keyFor(namespace, name)
    const before = this.objects.get(key)
    const object: Resource = {
      apiVersion: DOOR.apiVersion,
      kind: DOOR.kind,
      metadata: {
        namespace,
        name,
        uid: before?.metadata.uid ?? `uid-${this.#uids++}`,
        resourceVersion: String(++this.revision),
        ...metadata,
      },
      spec,
    }
    this.objects.set(key, object)
    this.#add(before === undefined ? 'ADDED' : 'MODIFIED', object)
    return structuredClone(object)
  }

  remove(name: string, namespace = 'one'): void {
    const key = keyFor(namespace, name)
    const before = this.objects.get(key)
    if (before === undefined) return
    this.objects.delete(key)
    const resourceVersion = String(++this.revision)
    this.#add('DELETED', { ...before, metadata: { ...before.metadata, resourceVersion } })
  }

  /** Watches from before now, and lists that have begun, have expired. */
  compact(): void {
    this.#compacted = this.revision
    this.#snapshots.clear()
  }

  /** From now on changes wait. */
  holdEvents(): void {
    this.#visible = this.#log.length
  }

  /** Lets some changes through, or all. */
  deliver(count: number): void {
    this.#visible = Math.min(
      this.#visible + count,
      count === Number.POSITIVE_INFINITY ? count : this.#log.length,
    )
    for (const wake of this.#wakers) wake()
  }

  /** Lets the next page through. */
  page(): void {
    this.#pages.shift()?.()
  }

  /** Ends all watches. */
  end(error?: unknown): void {
    for (const watch of [...this.open]) watch.end(error)
  }

  bookmark(): void {
    if (this.#visible < this.#log.length) return
    for (const watch of this.open) watch.say({ type: 'BOOKMARK', resourceVersion: String(this.revision) })
  }

  say(event: unknown): void {
    for (const watch of this.open) watch.say(event as WatchEvent<Resource>)
  }

  #add(type: Entry['event']['type'], object: Resource): void {
    this.#log.push({ version: this.revision, event: { type, object } })
    for (const wake of this.#wakers) wake()
  }

  async #list(options: Listing): Promise<Page<Resource>> {
    this.lists.push(options)
    if (this.holdPages) await new Promise<void>((resolve) => this.#pages.push(resolve))
    await Promise.resolve()
    options.signal?.throwIfAborted()
    if (this.listFaults.length > 0) throw this.listFaults.shift()
    const [version = String(this.revision), from = '0'] = options.continue?.split(' ') ?? []
    const id = `${version} ${options.namespace ?? ''}`
    const all = options.continue === undefined ? this.#select(options) : this.#snapshots.get(id)
    if (all === undefined) throw gone()
    this.#snapshots.set(id, all)
    const start = Number(from)
    const end = start + Math.min(this.pageSize, options.limit ?? this.pageSize)
    return {
      items: structuredClone(all.slice(start, end)),
      resourceVersion: version,
      ...(end < all.length ? { continue: `${version} ${end}` } : {}),
    }
  }

  async *#watch(options: Watching): AsyncGenerator<WatchEvent<Resource>> {
    this.watches.push(options)
    await Promise.resolve()
    if (this.watchFaults.length > 0) throw this.watchFaults.shift()
    const from = Number(options.resourceVersion)
    if (from < this.#compacted) throw gone()
    options.opened?.()
    let next = this.#log.findIndex(({ version }) => version > from)
    if (next < 0) next = this.#log.length
    const said: WatchEvent<Resource>[] = []
    let ended: { error?: unknown } | undefined
    let wake: () => void = () => {}
    const wakes = () => wake()
    const watch: Watch = {
      options,
      end: (error) => {
        ended ??= error === undefined ? {} : { error }
        wake()
      },
      say: (event) => {
        said.push(event)
        wake()
      },
    }
    const abort = () => watch.end(options.signal?.reason)
    this.open.add(watch)
    this.#wakers.add(wakes)
    options.signal?.addEventListener('abort', abort)
    try {
      for (;;) {
        if (ended?.error !== undefined) throw ended.error
        if (ended !== undefined) return
        const entry = next < this.#visible ? this.#log[next] : undefined
        const event = entry === undefined ? said.shift() : structuredClone(entry.event)
        if (entry !== undefined) next++
        if (event === undefined) await new Promise<void>((resolve) => (wake = resolve))
        else if (isSelected(event, options)) yield event
      }
    } finally {
      options.signal?.removeEventListener('abort', abort)
      this.#wakers.delete(wakes)
      this.open.delete(watch)
    }
  }

  #select({ namespace }: Selection): Resource[] {
    return [...this.objects.values()]
      .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
      .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  }
}

function isSelected(event: WatchEvent<Resource>, { namespace }: Selection): boolean {
  if (event?.type === 'BOOKMARK' || event?.object?.metadata?.namespace === undefined) return true
  return namespace === undefined || event.object.metadata.namespace === namespace
}
