import { createHash } from 'node:crypto'

/** Whether what is there says all that is wanted. More may be there: defaults of the server, fields of others. */
export function matches(wanted: unknown, found: unknown): boolean {
  if (wanted === undefined || wanted === found) return true
  if (typeof wanted !== 'object' || typeof found !== 'object' || wanted === null || found === null) {
    return false
  }
  if (Array.isArray(wanted)) return Array.isArray(found) && matchesList(wanted, found)
  if (Array.isArray(found)) return false
  return Object.entries(wanted).every(([key, value]) =>
    matches(value, (found as Record<string, unknown>)[key]),
  )
}

/** Lists of named things merge by name in the API, so others may have more; all other lists are a whole. */
function matchesList(wanted: readonly unknown[], found: readonly unknown[]): boolean {
  const names = wanted.map(nameOf)
  if (names.length > 0 && names.every((name) => name !== undefined)) {
    const byName = new Map(found.map((item) => [nameOf(item), item]))
    return wanted.every((item, index) => matches(item, byName.get(names[index])))
  }
  return wanted.length === found.length && wanted.every((item, index) => matches(item, found[index]))
}

function nameOf(item: unknown): string | undefined {
  const name = typeof item === 'object' && item !== null ? (item as { name?: unknown }).name : undefined
  return typeof name === 'string' ? name : undefined
}

/** The same digest for the same JSON value, whatever the order of its members. */
export function digestOf(value: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(value, (_key, item: unknown) => sorted(item)))
    .digest()
    .toString('hex', 0, 16)
}

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
}
