import { type Kind, keyFor, type Resource } from '../../core/resource.ts'
import type { Scope } from '../cluster.ts'
import { ObjectCache } from '../object-cache.ts'
import { hasLabels } from '../scope.ts'
import type { Change } from './journal.ts'
import { deepFreeze } from './shape.ts'
import type { Store } from './store.ts'

/** Objects of a kind, as of the last commit. They are frozen. */
export class EmbeddedCache<T extends Resource> extends ObjectCache<T> {
  readonly #store: Store
  readonly #kind: Kind<T>

  readonly #scope: Scope | undefined

  constructor(store: Store, kind: Kind<T>, scope?: Scope) {
    super(kind.kind)
    this.#store = store
    this.#kind = kind
    this.#scope = scope
    this.relist()
  }

  /** Takes over one change of the store. */
  take(change: Change): void {
    if (change.type === 'put' && this.#holds(change.object as T)) this.put(change.object as T)
    // What left the scope is gone as well. The object may be a newer one of the same name already, when a list was ahead of the journal.
    else this.delete(keyFor(change.ref.namespace, change.ref.name), change.uid)
  }

  /** Compares everything with the store. */
  relist(): void {
    const all = this.#store.list(this.#kind) as T[]
    this.replace(all.filter((object) => this.#holds(object)).map(deepFreeze))
  }

  #holds(object: T): boolean {
    return this.#scope === undefined || hasLabels(object, this.#scope)
  }
}
