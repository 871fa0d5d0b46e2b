import { keyOf, type Resource } from '../../core/resource.ts'

/** What was written last: its digest, and the version that the server gave to the result. */
export interface WrittenOnce {
  digest: string
  resourceVersion: string | undefined
}

interface Entry extends WrittenOnce {
  writer: string
  /** Of another writer: an object has one or two, for whom a map each would take several times the memory. */
  next: Entry | undefined
}

/** Remembers by object and writer what was written last, until the object is gone. */
export class Written {
  /** By kind, then by key. */
  readonly #kinds = new Map<string, Map<string, Entry>>()

  get(object: Resource, writer: string): WrittenOnce | undefined {
    let entry = this.#kinds.get(kindOf(object))?.get(keyOf(object))
    while (entry !== undefined && entry.writer !== writer) entry = entry.next
    return entry
  }

  set(object: Resource, writer: string, digest: string, result: Resource): void {
    const { resourceVersion } = result.metadata
    const known = this.get(object, writer) as Entry | undefined
    if (known !== undefined) {
      known.digest = digest
      known.resourceVersion = resourceVersion
      return
    }
    const kind = kindOf(object)
    const objects = this.#kinds.get(kind) ?? new Map<string, Entry>()
    this.#kinds.set(kind, objects)
    const key = keyOf(object)
    objects.set(key, { writer, digest, resourceVersion, next: objects.get(key) })
  }

  forget(object: Resource): void {
    this.#kinds.get(kindOf(object))?.delete(keyOf(object))
  }
}

function kindOf({ apiVersion, kind }: Resource): string {
  return `${apiVersion} ${kind}`
}
