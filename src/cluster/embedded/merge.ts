import { sameJson } from '../../core/resource.ts'
import { isObject, type Json } from './shape.ts'

/**
 * Server-side apply on plain JSON, after https://kubernetes.io/docs/reference/using-api/server-side-apply/: every
 * manager owns the leaves that it set. Lists are atomic, except conditions (by type), owner references (by uid) and
 * finalizers (a set), which are the lists that several managers share.
 */

/** A member's name, or an item of a keyed list. */
type Segment = string | { '=': string }
type Path = Segment[]

/** Who owns which leaves: manager → paths, each one JSON text of its segments, sorted. */
export type Owners = Record<string, string[]>

export interface Merge {
  merged: Json
  owners: Owners
  /** What others own and this apply changes; theirs no more in `owners`. */
  conflicts: { manager: string; path: string }[]
}

/**
 * @param live what is there
 * @param config all that the manager wants to own from now on
 */
export function mergeApply(live: Json, config: Json, owners: Owners, manager: string): Merge {
  const mine = [...leaves(config, [])].map((path) => JSON.stringify(path)).sort()
  let merged = mergeValue(live, config, []) as Json
  const conflicts: Merge['conflicts'] = []
  const next: Owners = {}
  // The usual case by far: nothing differs, so nobody's field is touched.
  const untouched = sameJson(live, merged)
  for (const [other, paths] of Object.entries(owners)) {
    if (other === manager) continue
    if (untouched) {
      next[other] = paths
      continue
    }
    const kept = paths.filter((text) => {
      const path = JSON.parse(text) as Path
      const before = valueAt(live, path)
      const after = valueAt(merged, path)
      if (sameJson(before, after) || (isObject(before) && isObject(after))) return true
      conflicts.push({ manager: other, path: showPath(path) })
      return false
    })
    if (kept.length > 0) next[other] = kept
  }
  const wanted = new Set(mine)
  // The field that names a list's item goes last: without it the item's other fields are not found.
  const dropped = (owners[manager] ?? [])
    .filter((text) => !wanted.has(text))
    .sort((a, b) => rank(a) - rank(b))
  if (dropped.length > 0) {
    const owned = [...mine, ...Object.values(next).flat()]
    for (const text of dropped) {
      const inside = `${text.slice(0, -1)},`
      if (owned.some((path) => path === text || path.startsWith(inside))) continue
      merged = (without(merged, JSON.parse(text) as Path, 0, owned) ?? {}) as Json
    }
  }
  if (mine.length > 0) next[manager] = mine
  return { merged, owners: next, conflicts }
}

/** Ownership after a replacement: who writes a changed leaf owns it alone; what is gone is nobody's. */
export function ownersAfterUpdate(before: Json, after: Json, owners: Owners, manager: string): Owners {
  const next: Owners = {}
  for (const [other, paths] of Object.entries(owners)) {
    const kept = paths.filter((text) => {
      const path = JSON.parse(text) as Path
      const value = valueAt(after, path)
      return value !== undefined && sameJson(valueAt(before, path), value)
    })
    if (kept.length > 0) next[other] = kept
  }
  const changed = [...leaves(after, [])]
    .filter((path) => !sameJson(valueAt(before, path), valueAt(after, path)))
    .map((path) => JSON.stringify(path))
  const mine = [...new Set([...(next[manager] ?? []), ...changed])].sort()
  if (mine.length > 0) next[manager] = mine
  return next
}

function rank(text: string): number {
  return /"\},"(type|uid)"\]$/.test(text) ? 1 : 0
}

function* leaves(value: unknown, path: Path): Generator<Path> {
  if (isObject(value) && Object.keys(value).length > 0) {
    for (const [key, child] of Object.entries(value)) yield* leaves(child, [...path, key])
    return
  }
  const keyed = keysOf(value, path)
  if (keyed === undefined || keyed.size === 0) {
    yield path
    return
  }
  for (const [key, item] of keyed) yield* leaves(item, [...path, { '=': key }])
}

/** The items of a keyed list by their key, or nothing for every other value. */
function keysOf(value: unknown, path: Path): Map<string, unknown> | undefined {
  if (!Array.isArray(value)) return undefined
  const field = keyField(path)
  if (field === undefined) return undefined
  const items = new Map<string, unknown>()
  for (const item of value) {
    const key = field === '' ? item : isObject(item) ? item[field] : undefined
    if (typeof key !== 'string' || items.has(key)) return undefined
    items.set(key, item)
  }
  return items
}

function keyField(path: Path): string | undefined {
  const last = path.at(-1)
  if (last === 'conditions') return 'type'
  if (path.length !== 2 || path[0] !== 'metadata') return undefined
  return last === 'ownerReferences' ? 'uid' : last === 'finalizers' ? '' : undefined
}

function mergeValue(live: unknown, config: unknown, path: Path): unknown {
  if (isObject(config)) {
    const result: Json = isObject(live) ? { ...live } : {}
    for (const [key, value] of Object.entries(config))
      result[key] = mergeValue(result[key], value, [...path, key])
    return result
  }
  const wanted = keysOf(config, path)
  const there = keysOf(live, path)
  if (wanted === undefined || there === undefined) return config
  for (const [key, item] of wanted) there.set(key, mergeValue(there.get(key), item, [...path, { '=': key }]))
  return [...there.values()]
}

function valueAt(tree: unknown, path: Path): unknown {
  let value = tree
  for (const [index, segment] of path.entries()) {
    if (typeof segment === 'string') {
      if (!isObject(value) || !Object.hasOwn(value, segment)) return undefined
      value = value[segment]
    } else {
      value = keysOf(value, path.slice(0, index))?.get(segment['='])
    }
  }
  return value
}

/** The value without the leaf at a path, and without parents that became empty and that nobody owns. */
function without(value: unknown, path: Path, depth: number, owned: string[]): unknown {
  const segment = path[depth]
  if (segment === undefined) {
    return isObject(value) && Object.keys(value).length > 0 ? value : undefined
  }
  const here = path.slice(0, depth)
  let result: Json | unknown[]
  if (typeof segment === 'string') {
    if (!isObject(value) || !Object.hasOwn(value, segment)) return value
    const { [segment]: child, ...rest } = value
    const left = without(child, path, depth + 1, owned)
    // Put back in place, so that the order of fields stays as the user wrote it.
    result = left === undefined ? rest : { ...value, [segment]: left }
  } else {
    const items = keysOf(value, here)
    if (items === undefined || !items.has(segment['='])) return value
    const left = without(items.get(segment['=']), path, depth + 1, owned)
    if (left === undefined) items.delete(segment['='])
    else items.set(segment['='], left)
    result = [...items.values()]
  }
  const empty = Array.isArray(result) ? result.length === 0 : Object.keys(result).length === 0
  return empty && !owned.includes(JSON.stringify(here)) ? undefined : result
}

/** `spec.ports`, `status.conditions[Ready].reason`, `metadata.annotations["a.b/c"]`. */
function showPath(path: Path): string {
  return path
    .map((segment, index) => {
      if (typeof segment !== 'string') return `[${segment['=']}]`
      if (!/^[\w-]+$/.test(segment)) return `[${JSON.stringify(segment)}]`
      return index === 0 ? segment : `.${segment}`
    })
    .join('')
}
