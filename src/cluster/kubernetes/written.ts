import { keyOf, type Resource } from '../../core/resource.ts'

/** What was written last: its digest, and the version that the server gave to the result. */
export interface WrittenOnce {
  digest: string
  resourceVersion: string | undefined
}

/** Remembers by object and writer what was written last, until the object is gone. */
export class Written {
  readonly #objects = new Map<string, Map<string, WrittenOnce>>()

  get(object: Resource, writer: string): WrittenOnce | undefined {
    return this.#objects.get(idOf(object))?.get(writer)
  }

  set(object: Resource, writer: string, digest: string, result: Resource): void {
    const id = idOf(object)
    const writers = this.#objects.get(id) ?? new Map<string, WrittenOnce>()
    writers.set(writer, { digest, resourceVersion: result.metadata.resourceVersion })
    this.#objects.set(id, writers)
  }

  forget(object: Resource): void {
    this.#objects.delete(idOf(object))
  }
}

function idOf(object: Resource): string {
  return `${object.apiVersion} ${object.kind} ${keyOf(object)}`
}
