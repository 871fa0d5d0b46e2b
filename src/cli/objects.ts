import { Store } from '../cluster/embedded/store.ts'
import { EVENT } from '../cluster/kinds.ts'
import { PosternError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'
import { describeRef, type Kind, type Ref, type Resource } from '../core/resource.ts'
import type { EventLike } from './events.ts'
import { requireState } from './state.ts'

export const DEFAULT_NAMESPACE = 'default'

/**
 * Works on the objects of a state folder, beside a `postern up` that may run on it.
 *
 * @throws PosternError `StateNotFound`
 */
export async function withStore<T>(state: string, work: (store: Store) => Promise<T> | T): Promise<T> {
  requireState(state)
  const store = new Store(state)
  try {
    return await work(store)
  } finally {
    store.close()
  }
}

export function refTo(kind: Kind, namespace: string, name: string): Ref {
  return {
    apiVersion: kind.apiVersion,
    kind: kind.kind,
    name,
    ...(kind.namespaced ? { namespace } : {}),
  }
}

/** @throws PosternError `NotFound` with the nearest name there is */
export function existing(store: Store, kind: Kind, namespace: string, name: string): Resource {
  const ref = refTo(kind, namespace, name)
  const object = store.get(ref)
  if (object !== undefined) return object
  const names = store.list(kind, ref.namespace).map((one) => one.metadata.name)
  const near = nearest(name, names)
  const elsewhere = store.list(kind).find((one) => one.metadata.name === name)
  const hint =
    elsewhere !== undefined
      ? `; there is one in namespace ${elsewhere.metadata.namespace}: add -n ${elsewhere.metadata.namespace}`
      : near !== undefined
        ? `; did you mean '${near}'?`
        : `; see 'postern get ${kind.plural}'`
  throw new PosternError('NotFound', `${describeRef(ref)} does not exist${hint}`)
}

export function listed(store: Store, kind: Kind, namespace: string | undefined): Resource[] {
  return store.list(kind, kind.namespaced ? namespace : undefined)
}

export function eventsIn(store: Store, object: Resource): EventLike[] {
  return store.list(EVENT, object.metadata.namespace ?? DEFAULT_NAMESPACE) as EventLike[]
}
