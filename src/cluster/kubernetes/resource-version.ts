/**
 * Versions of objects and lists are decimal numbers that only grow, comparable within a kind (KEP-5504). They may be
 * longer than a JavaScript number is exact.
 */
const VERSION = /^(0|[1-9][0-9]{0,38})$/

export function isVersion(value: unknown): value is string {
  return typeof value === 'string' && VERSION.test(value)
}

/** Whether `a` is newer than `b`; anything is newer than nothing. */
export function isNewer(a: string, b: string | undefined): boolean {
  if (b === undefined) return true
  return a.length === b.length ? a > b : a.length > b.length
}
