import { describeRef, type Resource, refOf } from '../../core/resource.ts'
import { ClusterError } from '../errors.ts'

/** The same limit as etcd's, so that what fits here fits a cluster. */
export const MAX_OBJECT_BYTES: number = 1.5 * 1024 * 1024
const MAX_DEPTH = 64

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

export type Json = Record<string, unknown>

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What is wrong with an object's name (a DNS-1123 subdomain), or nothing. */
export function nameProblem(name: unknown): string | undefined {
  if (name === undefined || name === null || name === '') return 'is missing: give the object a name'
  if (typeof name !== 'string') return 'must be a string: put it in quotes'
  if (name.length <= 253 && SUBDOMAIN.test(name)) return undefined
  return `${quote(name)} is no valid name: use at most 253 lower case letters, digits, "-" and ".", with a letter or digit at both ends`
}

/** What is wrong with a namespace's name (a DNS-1123 label), or nothing. */
export function namespaceProblem(namespace: unknown): string | undefined {
  if (typeof namespace !== 'string') return 'must be a string: put it in quotes'
  if (LABEL.test(namespace)) return undefined
  return `${quote(namespace)} is no valid namespace: use at most 63 lower case letters, digits and "-", with a letter or digit at both ends`
}

function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
}

/**
 * A private copy of an object as JSON has it, after all that could hurt the store is refused.
 *
 * @throws ClusterError `Invalid`
 */
export function normalise(object: Resource): Resource {
  if (!isObject(object) || !isObject(object.metadata)) {
    throw new ClusterError('Invalid', 'an object needs apiVersion, kind and metadata.name')
  }
  for (const field of ['apiVersion', 'kind']) {
    const value = object[field]
    if (typeof value !== 'string' || value === '') throw new ClusterError('Invalid', `${field} is missing`)
  }
  const wrong = nameProblem(object.metadata.name)
  if (wrong !== undefined) throw new ClusterError('Invalid', `${object.kind}: metadata.name: ${wrong}`)
  const { namespace } = object.metadata
  if (namespace !== undefined && namespace !== '') {
    const bad = namespaceProblem(namespace)
    if (bad !== undefined) {
      throw new ClusterError('Invalid', `${object.kind} ${object.metadata.name}: metadata.namespace: ${bad}`)
    }
  }
  checkShape(object, describeRef(refOf(object)))
  return JSON.parse(JSON.stringify(object)) as Resource
}

/**
 * Refuses what is too deep (a circle included), too big, or has a member that JavaScript would take for a prototype.
 * Counts as it goes, so that aliases of one big value never grow into one big text first.
 */
export function checkShape(value: unknown, what: string): void {
  let size = 0
  const visit = (item: unknown, depth: number): void => {
    if (depth > MAX_DEPTH)
      throw new ClusterError('Invalid', `${what} is nested deeper than ${MAX_DEPTH} levels`)
    size += typeof item === 'string' ? item.length + 2 : 1
    if (size > MAX_OBJECT_BYTES) throw tooBig(what)
    if (Array.isArray(item)) {
      for (const child of item) visit(child, depth + 1)
    } else if (isObject(item)) {
      for (const key of Object.keys(item)) {
        if (key === '__proto__')
          throw new ClusterError('Invalid', `${what} has a field named __proto__: remove it`)
        size += key.length + 3
        visit(item[key], depth + 1)
      }
    }
  }
  visit(value, 0)
}

export function tooBig(what: string): ClusterError {
  return new ClusterError('Invalid', `${what} is bigger than 1.5 MB: split it or keep large data elsewhere`)
}

/** Texts that many objects share: kinds, reasons, times, names. A sixth of the memory of a full cache. */
const shared = new Map<string, string>()
const SHARED = 4096

/** Freezes all of a private JSON value, so that one copy can be handed to everybody, and makes it small. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  const members = value as Record<string, unknown>
  for (const key of Object.keys(members)) {
    const member = members[key]
    if (typeof member === 'object') deepFreeze(member)
    else if (typeof member === 'string') members[key] = share(member)
  }
  return Object.freeze(value)
}

function share(text: string): string {
  if (text.length < 8 || text.length > 64) return text
  const known = shared.get(text)
  if (known !== undefined) return known
  // What is used often is back soon.
  if (shared.size >= SHARED) shared.clear()
  shared.set(text, text)
  return text
}
