import type { Metadata, Resource } from '../../core/resource.ts'
import { isMap } from './is-map.ts'

/** Returns what is stored in place of an object, which it may change. */
export type Transform<T extends Resource> = (object: T) => T

const SHARED_LIMIT = 4096
/** Strings that many objects have, once each: a JSON parser makes a new one every time. */
const shared = new Map<string, string>()

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/**
 * An object as a cache keeps it: without what nobody reads, which is up to half of it. In place, and by assigning
 * undefined: objects of the same shape share a hidden class in V8, which a `delete` would take from each of them.
 */
export function trimmed<T extends Resource>(object: T, metadataOnly: boolean, transform?: Transform<T>): T {
  const metadata = object.metadata as Metadata & { managedFields?: unknown }
  if (metadata.managedFields !== undefined) metadata.managedFields = undefined
  const annotations: Record<string, string | undefined> | undefined = metadata.annotations
  if (annotations?.[LAST_APPLIED] !== undefined) annotations[LAST_APPLIED] = undefined
  share(object)
  if (metadataOnly) return { apiVersion: object.apiVersion, kind: object.kind, metadata } as T
  try {
    return transform === undefined ? object : transform(object)
  } catch (error) {
    // It only saves memory: an object that it cannot read is kept as it is, and stops no watch.
    process.emitWarning(error instanceof Error ? error : String(error))
    return object
  }
}

/** Has an object use the strings that others like it have already: about half a kilobyte an object. */
function share(object: Resource): void {
  shareFields(object, ['apiVersion', 'kind', 'type'])
  const { metadata } = object
  shareFields(metadata, ['namespace', 'creationTimestamp'])
  if (isMap(metadata.labels)) shareFields(metadata.labels, Object.keys(metadata.labels))
  const conditions: unknown = (object.status as { conditions?: unknown } | undefined)?.conditions
  if (!Array.isArray(conditions)) return
  for (const condition of conditions) if (isMap(condition)) shareFields(condition, Object.keys(condition))
}

function shareFields(map: object, fields: readonly string[]): void {
  const values = map as Record<string, unknown>
  for (const field of fields) {
    const value = values[field]
    if (typeof value === 'string') values[field] = sharedString(value)
  }
}

function sharedString(value: string): string {
  const known = shared.get(value)
  if (known !== undefined) return known
  // Whatever it held stays shared by those who have it.
  if (shared.size >= SHARED_LIMIT) shared.clear()
  shared.set(value, value)
  return value
}
