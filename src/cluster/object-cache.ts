import { keyOf, type Resource } from '../core/resource.ts'
import type { Cache, CacheChange } from './cluster.ts'

type Listener<T extends Resource> = (change: CacheChange<T>) => void

interface Subscription<T extends Resource> {
  readonly listener: Listener<T>
  active: boolean
}

/** Changes that wait to be told, to those who were subscribed when they happened. */
interface News<T extends Resource> {
  changes: CacheChange<T>[]
  audience: readonly Subscription<T>[]
}

const NAMESPACE = '\0namespace'

/**
 * Objects of a kind by key, with indexes and listeners. Everybody gets the same objects: whoever wants to change one
 * copies it first.
 *
 * Each listener hears an unbroken story of every key: `before` of a change is the `after` that it heard last. So what
 * a listener changes is told after what it hears, and what a cache says may be ahead of what was told.
 */
export class ObjectCache<T extends Resource> implements Cache<T> {
  readonly ready: Promise<void>
  readonly #name: string
  readonly #objects = new Map<string, T>()
  readonly #indexes = new Map<string, Index<T>>()
  /** Replaced, never changed: news that wait hold on to it. */
  #audience: readonly Subscription<T>[] = []
  #news: News<T>[] = []
  #telling = false

  /** @param name of the kind, for messages */
  constructor(name: string, ready: Promise<void> = Promise.resolve()) {
    this.#name = name
    this.ready = ready
    this.index(NAMESPACE, (object) => [object.metadata.namespace ?? ''])
  }

  get(key: string): T | undefined {
    return this.#objects.get(key)
  }

  list(namespace?: string): T[] {
    return namespace === undefined ? [...this.#objects.values()] : this.by(NAMESPACE, namespace)
  }

  by(index: string, value: string): T[] {
    const found = this.#indexes.get(index)
    if (found === undefined)
      throw new Error(`the cache of ${this.#name} has no index ${index}: declare it first`)
    return found.get(value)
  }

  index(name: string, values: (object: T) => string[]): void {
    if (this.#indexes.has(name)) return
    const index = new Index(values)
    for (const [key, object] of this.#objects) index.add(key, object)
    this.#indexes.set(name, index)
  }

  subscribe(listener: Listener<T>): () => void {
    const subscription: Subscription<T> = { listener, active: true }
    this.#audience = [...this.#audience, subscription]
    const outer = this.#telling
    this.#telling = true
    for (const [key, after] of [...this.#objects]) call(subscription, { key, after })
    this.#telling = outer
    this.#tell()
    return () => {
      subscription.active = false
      this.#audience = this.#audience.filter((other) => other !== subscription)
    }
  }

  /** Takes an object over. One of the version that is held already changes nothing. */
  put(object: T): void {
    this.change([object], [])
  }

  /** @param uid only when it is this object: it may be a newer one of the same name already */
  delete(key: string, uid?: string): void {
    if (uid === undefined || this.#objects.get(key)?.metadata.uid === uid) this.change([], [key])
  }

  /** Makes these all that there is. Listeners hear of it once everything is in. */
  replace(objects: Iterable<T>): void {
    const all = [...objects]
    const gone = new Set(this.#objects.keys())
    for (const object of all) gone.delete(keyOf(object))
    this.change(all, gone)
  }

  /** Several puts and deletes at once; then they are told, in this order. */
  protected change(puts: Iterable<T>, gone: Iterable<string>): void {
    const changes: CacheChange<T>[] = []
    for (const after of puts) this.#set(keyOf(after), after, changes)
    for (const key of gone) this.#set(key, undefined, changes)
    if (changes.length === 0 || this.#audience.length === 0) return
    this.#news.push({ changes, audience: this.#audience })
    this.#tell()
  }

  #set(key: string, after: T | undefined, changes: CacheChange<T>[]): void {
    const before = this.#objects.get(key)
    if (before === after || (after !== undefined && isSameVersion(before, after))) return
    if (after === undefined) this.#objects.delete(key)
    else this.#objects.set(key, after)
    for (const index of this.#indexes.values()) {
      if (before !== undefined) index.remove(key, before)
      if (after !== undefined) index.add(key, after)
    }
    changes.push({
      key,
      ...(before === undefined ? {} : { before }),
      ...(after === undefined ? {} : { after }),
    })
  }

  #tell(): void {
    if (this.#telling) return
    this.#telling = true
    for (let news = this.#news.shift(); news !== undefined; news = this.#news.shift()) {
      for (const change of news.changes) {
        for (const subscription of news.audience) call(subscription, change)
      }
    }
    this.#telling = false
  }
}

class Index<T extends Resource> {
  readonly #values: (object: T) => string[]
  readonly #entries = new Map<string, Map<string, T>>()

  constructor(values: (object: T) => string[]) {
    this.#values = values
  }

  get(value: string): T[] {
    return [...(this.#entries.get(value)?.values() ?? [])]
  }

  add(key: string, object: T): void {
    for (const value of this.#of(object)) {
      const entry = this.#entries.get(value)
      if (entry === undefined) this.#entries.set(value, new Map([[key, object]]))
      else entry.set(key, object)
    }
  }

  remove(key: string, object: T): void {
    for (const value of this.#of(object)) {
      const entry = this.#entries.get(value)
      entry?.delete(key)
      if (entry?.size === 0) this.#entries.delete(value)
    }
  }

  /** An object that an index cannot read is in none of its values: it must not stop the others. */
  #of(object: T): string[] {
    try {
      return this.#values(object)
    } catch {
      return []
    }
  }
}

function isSameVersion(before: Resource | undefined, after: Resource): boolean {
  const version = after.metadata.resourceVersion
  return version !== undefined && version === before?.metadata.resourceVersion
}

function call<T extends Resource>({ listener, active }: Subscription<T>, change: CacheChange<T>): void {
  if (!active) return
  try {
    listener(change)
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : String(error))
  }
}
