import type { Resource } from '../../core/resource.ts'
import type { Cache, Named, NamedCache } from '../cluster.ts'

/** Objects by name, from the cache of all: this store keeps nothing from its one user. */
export class EmbeddedNamed<T extends Resource> implements NamedCache<T> {
  readonly #cache: Cache<T>
  readonly #wanted = new Set<string>()
  readonly #listeners = new Set<(key: string) => void>()

  constructor(cache: Cache<T>) {
    this.#cache = cache
    cache.subscribe(({ key }) => {
      if (this.#wanted.has(key)) for (const listener of [...this.#listeners]) listener(key)
    })
  }

  want(key: string): void {
    this.#wanted.add(key)
  }

  drop(key: string): void {
    this.#wanted.delete(key)
  }

  get(key: string): Named<T> | undefined {
    if (!this.#wanted.has(key)) return undefined
    const object = this.#cache.get(key)
    return object === undefined ? {} : { object }
  }

  subscribe(listener: (key: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
