import { isIP } from 'node:net'
import { CLIENTS_LIMIT } from '../limits.ts'
import { argumentError } from './errors.ts'

export interface OnionPortMapping {
  /** 1 to 65535 */
  virtualPort: number
  /** `unix:/path`, `ip:port`, `[ipv6]:port` or `port` on 127.0.0.1. No host name: tor would block on resolving it, once. */
  target: string
}

export interface AddOnion {
  /** `ED25519-V3:<base64>`. A secret. */
  key: string
  ports: OnionPortMapping[]
  /** e.g. `Detach`, without which the onion ends with this connection. V3Auth is set by `clients`. */
  flags?: string[]
  /** Public x25519 keys of the only clients that may connect, in base32 (52 characters). */
  clients?: string[]
  /** Streams allowed on one rendezvous circuit; 0 for no limit. */
  maxStreams?: number
  /** Proof of work, with the rate and burst of its queue. */
  pow?: { queueRate?: number; queueBurst?: number }
}

/** The command line of ADD_ONION (control-spec, section 3.27). Throws `ControlArgument`; no error holds the key. */
export function addOnionCommand({ key, ports, flags = [], clients = [], maxStreams, pow }: AddOnion): string {
  if (!/^ED25519-V3:[A-Za-z0-9+/]{86}(?:==)?$/.test(key)) {
    throw argumentError('An onion key for the control port is ED25519-V3: and base64 of 64 bytes')
  }
  if (ports.length === 0) throw argumentError('An onion needs at least one port')
  if (clients.length > CLIENTS_LIMIT) {
    throw argumentError(
      `An onion takes ${CLIENTS_LIMIT} clients, not ${clients.length}: spread them over more onions`,
    )
  }
  const allFlags = new Set([...flags, ...(clients.length > 0 ? ['V3Auth'] : [])])
  for (const flag of allFlags) {
    if (!/^[A-Za-z0-9]+$/.test(flag)) throw argumentError('A flag of an onion has letters and digits only')
  }
  const words = [`ADD_ONION ${key}`]
  if (allFlags.size > 0) words.push(`Flags=${[...allFlags].join(',')}`)
  if (maxStreams !== undefined) words.push(`MaxStreams=${integer(maxStreams, 0, 65_535, 'maxStreams')}`)
  if (pow !== undefined) {
    words.push('PoWDefensesEnabled=1')
    if (pow.queueRate !== undefined)
      words.push(`PoWQueueRate=${integer(pow.queueRate, 0, 2 ** 31 - 1, 'queueRate')}`)
    if (pow.queueBurst !== undefined)
      words.push(`PoWQueueBurst=${integer(pow.queueBurst, 0, 2 ** 31 - 1, 'queueBurst')}`)
  }
  for (const { virtualPort, target } of ports) {
    words.push(`Port=${integer(virtualPort, 1, 65_535, 'virtualPort')},${checkedTarget(target)}`)
  }
  for (const client of clients) {
    if (!/^[A-Za-z2-7]{52}$/.test(client)) {
      throw argumentError("A client's public key is 52 characters of base32, without padding")
    }
    words.push(`ClientAuthV3=${client.toUpperCase()}`)
  }
  return words.join(' ')
}

function checkedTarget(target: string): string {
  if (/^unix:\/[^\s"\\\x00-\x1f\x7f]+$/.test(target)) return target
  const parts = /^(?:(.+):)?([0-9]{1,5})$/.exec(target)
  const port = Number(parts?.[2])
  const host = parts?.[1]
  if (port >= 1 && port <= 65_535 && (host === undefined || isLiteral(host))) return target
  throw argumentError(
    'The target of an onion port must be unix:/path (without blanks), an IP address with a port, or a port: resolve host names first',
  )
}

function isLiteral(host: string): boolean {
  return host.startsWith('[') && host.endsWith(']') ? isIP(host.slice(1, -1)) === 6 : isIP(host) === 4
}

function integer(value: number, least: number, most: number, name: string): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw argumentError(`${name} must be a whole number from ${least} to ${most}`)
}
