import type { Metadata, Resource } from '../../core/resource.ts'

/** Returns what is stored in place of an object, which it may change. */
export type Transform<T extends Resource> = (object: T) => T

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/**
 * An object as a cache keeps it: without what nobody reads, which is up to half of it. In place, and by assigning
 * undefined: objects of the same shape share a hidden class in V8, which a `delete` would take from each of them.
 */
export function trimmed<T extends Resource>(object: T, metadataOnly: boolean, transform?: Transform<T>): T {
  const { apiVersion, kind } = object
  const metadata = object.metadata as Metadata & { managedFields?: unknown }
  if (metadata.managedFields !== undefined) metadata.managedFields = undefined
  const annotations: Record<string, string | undefined> | undefined = metadata.annotations
  if (annotations?.[LAST_APPLIED] !== undefined) annotations[LAST_APPLIED] = undefined
  if (metadataOnly) return { apiVersion, kind, metadata } as T
  try {
    return transform === undefined ? object : transform(object)
  } catch (error) {
    // It only saves memory: an object that it cannot read is kept as it is, and stops no watch.
    process.emitWarning(error instanceof Error ? error : String(error))
    return object
  }
}
