import { isIPv4, isIPv6 } from 'node:net'
import { nearest } from '../../core/nearest.ts'

/** Readers of settings' values. Each throws a RangeError that says what is wrong with a value, and what would be right. */

export interface Address {
  host: string
  port: number
}

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
/** registry:port/path:tag@digest, loosely: the kubelet says the rest. */
const IMAGE = /^[a-zA-Z0-9][a-zA-Z0-9._:/-]{0,400}(@sha256:[a-f0-9]{64})?$/
const MOST_NAMESPACES = 100

export function oneOf<T extends string>(text: string, known: readonly T[]): T {
  const found = known.find((one) => one === text)
  if (found !== undefined) return found
  const near = nearest(text, known)
  const hint = near === undefined ? `there are ${known.join(', ')}` : `did you mean '${near}'?`
  throw new RangeError(`there is no ${quote(text)}; ${hint}`)
}

/** At least one of a few words, separated by commas; each counts once. */
export function someOf<T extends string>(text: string, known: readonly T[]): T[] {
  const words = list(text)
  if (words.length === 0) throw new RangeError(`names nothing; there are ${known.join(', ')}`)
  return [...new Set(words.map((word) => oneOf(word, known)))]
}

/** Undefined for none, which means all. */
export function namespaces(text: string): string[] | undefined {
  const names = [...new Set(list(text).map(namespace))]
  if (names.length > MOST_NAMESPACES) {
    throw new RangeError(
      `names ${names.length} namespaces, and each is watched on its own: name at most ${MOST_NAMESPACES}, or none for all`,
    )
  }
  return names.length === 0 ? undefined : names
}

export function namespace(text: string): string {
  if (LABEL.test(text)) return text
  throw new RangeError(
    `${quote(text)} is no name of a namespace: at most 63 lower-case letters, digits and '-', with a letter or digit at both ends`,
  )
}

export function objectName(text: string): string {
  if (SUBDOMAIN.test(text)) return text
  throw new RangeError(
    `${quote(text)} is no name of an object: at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends`,
  )
}

export function holder(text: string): string {
  if (/^[\x21-\x7e]{1,128}$/.test(text)) return text
  throw new RangeError(`${quote(text)} is no identity: 1 to 128 characters of ASCII, without spaces`)
}

export function image(text: string): string {
  if (IMAGE.test(text)) return text
  throw new RangeError(`${quote(text)} is no image: as registry.example/postern-tor:1.2.3`)
}

export function bool(text: string): boolean {
  if (text === 'true' || text === 'false') return text === 'true'
  throw new RangeError(`${quote(text)} is neither true nor false`)
}

export function wholeNumber(text: string, least: number, most: number): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (number >= least && number <= most) return number
  throw new RangeError(`${quote(text)} is no whole number from ${least} to ${most}`)
}

/** `host:port`, `[ipv6]:port`, `:port` for all addresses; undefined for `off`. */
export function address(text: string): Address | undefined {
  if (text === 'off') return undefined
  const parts = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text)
  const host = parts?.[1] ?? parts?.[2] ?? ''
  const port = Number(parts?.[3] ?? Number.NaN)
  const ip = parts?.[1] === undefined ? host === '' || host === 'localhost' || isIPv4(host) : isIPv6(host)
  if (parts !== null && ip && port >= 1 && port <= 65_535)
    return { host: host === '' ? '0.0.0.0' : host, port }
  throw new RangeError(`${quote(text)} is no address: as 0.0.0.0:8080, [::]:8080 or 127.0.0.1:8080, or off`)
}

function list(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}

function quote(text: string): string {
  return `'${text.length > 60 ? `${text.slice(0, 60)}…` : text}'`
}
