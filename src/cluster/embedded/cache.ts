import { type Kind, keyFor, keyOf, type Resource } from '../../core/resource.ts'
import type { Cache, CacheChange } from '../cluster.ts'
import type { Change } from './journal.ts'
import { deepFreeze } from './shape.ts'
import type { Store } from './store.ts'

type Listener<T extends Resource> = (change: CacheChange<T>) => void

const NAMESPACE = '\0namespace'

/**
 * All objects of a kind, as of the last commit. They are frozen: everybody gets the same ones, and whoever wants to
 * change one copies it first.
 */
export class EmbeddedCache<T extends Resource> implements Cache<T> {
  readonly ready: Promise<void> = Promise.resolve()
  readonly #store: Store
  readonly #kind: Kind<T>
  readonly #objects = new Map<string, T>()
  readonly #indexes = new Map<string, Index<T>>()
  readonly #listeners = new Set<Listener<T>>()

  constructor(store: Store, kind: Kind<T>) {
    this.#store = store
    this.#kind = kind
    this.index(NAMESPACE, (object) => [object.metadata.namespace ?? ''])
    this.relist()
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
      throw new Error(`the cache of ${this.#kind.kind} has no index ${index}: declare it first`)
    return found.get(value)
  }

  index(name: string, values: (object: T) => string[]): void {
    if (this.#indexes.has(name)) return
    const index = new Index(values)
    for (const [key, object] of this.#objects) index.add(key, object)
    this.#indexes.set(name, index)
  }

  subscribe(listener: Listener<T>): () => void {
    this.#listeners.add(listener)
    for (const [key, after] of [...this.#objects]) call(listener, { key, after })
    return () => this.#listeners.delete(listener)
  }

  /** Takes over one change of the store. */
  take(change: Change): void {
    const key = keyFor(change.ref.namespace, change.ref.name)
    if (change.type === 'put') this.#set(key, change.object as T)
    // The object may be a newer one of the same name already, when a list was ahead of the journal.
    else if (this.#objects.get(key)?.metadata.uid === change.uid) this.#set(key, undefined)
  }

  /** Compares everything with the store. */
  relist(): void {
    const gone = new Set(this.#objects.keys())
    for (const object of this.#store.list(this.#kind) as T[]) {
      const key = keyOf(object)
      gone.delete(key)
      this.#set(key, deepFreeze(object))
    }
    for (const key of gone) this.#set(key, undefined)
  }

  #set(key: string, after: T | undefined): void {
    const before = this.#objects.get(key)
    if (before?.metadata.resourceVersion === after?.metadata.resourceVersion) return
    if (after === undefined) this.#objects.delete(key)
    else this.#objects.set(key, after)
    for (const index of this.#indexes.values()) {
      if (before !== undefined) index.remove(key, before)
      if (after !== undefined) index.add(key, after)
    }
    const change = {
      key,
      ...(before === undefined ? {} : { before }),
      ...(after === undefined ? {} : { after }),
    }
    for (const listener of [...this.#listeners]) call(listener, change)
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

function call<T extends Resource>(listener: Listener<T>, change: CacheChange<T>): void {
  try {
    listener(change)
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : String(error))
  }
}
