import type { Logger } from '../../core/logger.ts'
import { type Kind, type Resource, splitKey } from '../../core/resource.ts'
import type { Named, NamedCache } from '../cluster.ts'
import type { Api } from './api.ts'
import { ReflectedCache } from './reflected-cache.ts'
import { Reflector } from './reflector.ts'

interface Followed<T extends Resource> {
  cache: ReflectedCache<T>
  reflector: Reflector<T>
}

/**
 * Objects that are each watched by their name, as the kubelet watches Secrets: a role can allow them one by one, and
 * nothing else of the kind is ever read.
 */
export class FollowedByName<T extends Resource> implements NamedCache<T> {
  readonly #api: Api
  readonly #kind: Kind<T>
  readonly #log: Logger
  readonly #followed = new Map<string, Followed<T>>()
  readonly #listeners = new Set<(key: string) => void>()

  constructor(api: Api, kind: Kind<T>, log: Logger) {
    this.#api = api
    this.#kind = kind
    this.#log = log
  }

  want(key: string): void {
    if (this.#followed.has(key)) return
    const { namespace, name } = splitKey(key)
    const cache = new ReflectedCache<T>(this.#kind)
    const reflector = new Reflector<T>({
      api: this.#api,
      kind: this.#kind,
      selection: { ...(namespace === '' ? {} : { namespace }), fieldSelector: `metadata.name=${name}` },
      cache,
      log: this.#log,
      // A refusal is an answer as well.
      hooks: { onState: () => this.#tell(key) },
    })
    this.#followed.set(key, { cache, reflector })
    cache.subscribe(() => this.#tell(key))
    reflector.start()
  }

  drop(key: string): void {
    const followed = this.#followed.get(key)
    this.#followed.delete(key)
    void followed?.reflector.close()
  }

  get(key: string): Named<T> | undefined {
    const followed = this.#followed.get(key)
    if (followed === undefined) return undefined
    const object = followed.cache.get(key)
    if (object !== undefined) return { object }
    const { synced, error } = followed.reflector.state
    if (synced) return {}
    return error === undefined ? undefined : { error }
  }

  subscribe(listener: (key: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#followed.values()].map(({ reflector }) => reflector.close()))
  }

  #tell(key: string): void {
    if (!this.#followed.has(key)) return
    for (const listener of [...this.#listeners]) listener(key)
  }
}
