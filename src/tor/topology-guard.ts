import { isIP } from 'node:net'
import { messageOf, PosternError } from '../core/errors.ts'
import {
  type AccessPort,
  type Endpoint,
  type OnionPlan,
  type OnionPort,
  type ProxyPlan,
  type ProxyTarget,
  TOPOLOGY_VERSION,
  type TorAccess,
  type TorTopology,
  type WatchPlan,
} from './contract.ts'
import { CLIENTS_LIMIT, PATH_PATTERN, WATCH_EVERY, WATCH_LIMIT } from './limits.ts'

export type TopologyLimit =
  | 'bytes'
  | 'onions'
  | 'portsPerOnion'
  | 'endpointsPerPort'
  | 'proxies'
  | 'targetsPerProxy'
  | 'options'
  | 'optionLength'
  | 'clientsPerOnion'
  | 'watch'

/** What one document may hold at most. */
export const TOPOLOGY_LIMITS: Readonly<Record<TopologyLimit, number>> = {
  bytes: 4 * 1024 * 1024,
  onions: 2_000,
  portsPerOnion: 256,
  endpointsPerPort: 2_000,
  proxies: 1_000,
  targetsPerProxy: 256,
  options: 256,
  optionLength: 262_144,
  clientsPerOnion: CLIENTS_LIMIT,
  watch: WATCH_LIMIT,
}

const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
const ADDRESS = /^[a-z2-7]{55}d$/
const ONION = /^([a-z0-9-]{1,63}\.){0,4}[a-z2-7]{55}d\.onion$/i
const CLIENT = /^[A-Z2-7]{52}$/
const TRANSPORT = /^[A-Za-z_][A-Za-z0-9_]*$/
const OPTION = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/

/**
 * Reads a topology document and checks every field of it; fields that this version does not know are left out.
 *
 * @throws PosternError TopologyInvalid (with the path of the field), TopologyVersionUnsupported
 */
export function parseTopology(text: string): TorTopology {
  if (text.length > TOPOLOGY_LIMITS.bytes) {
    throw invalid('the document', `has more than ${TOPOLOGY_LIMITS.bytes} characters`)
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw invalid('the document', `is not whole JSON (${messageOf(error)})`)
  }
  const top = object(value, 'the document')
  if (top.version !== TOPOLOGY_VERSION) {
    throw new PosternError(
      'TopologyVersionUnsupported',
      `the topology has version ${JSON.stringify(top.version)?.slice(0, 40)}, this agent knows ${TOPOLOGY_VERSION}: let the operator and the agent have the same release`,
    )
  }
  const topology: TorTopology = {
    version: TOPOLOGY_VERSION,
    daemon: daemon(top.daemon),
    onions: list(top.onions, 'onions', TOPOLOGY_LIMITS.onions, onion),
    proxies: list(top.proxies, 'proxies', TOPOLOGY_LIMITS.proxies, proxy),
    ...(top.watch === undefined ? {} : { watch: list(top.watch, 'watch', TOPOLOGY_LIMITS.watch, watched) }),
  }
  unique(topology.onions, (one) => one.name, 'onions', 'name')
  unique(topology.onions, (one) => one.address, 'onions', 'address')
  unique(topology.proxies, (one) => one.name, 'proxies', 'name')
  unique(topology.watch ?? [], (one) => `${one.namespace}/${one.name}`, 'watch', 'name')
  return topology
}

function daemon(value: unknown): TorTopology['daemon'] {
  const from = object(value, 'daemon')
  const options: Record<string, string> = {}
  const entries = Object.entries(object(from.options ?? {}, 'daemon.options'))
  if (entries.length > TOPOLOGY_LIMITS.options) throw invalid('daemon.options', 'has too many entries')
  for (const [name, option] of entries) {
    const at = `daemon.options.${name.slice(0, 64)}`
    if (!OPTION.test(name)) throw invalid(at, 'is not the name of an option')
    options[name] = string(option, at, TOPOLOGY_LIMITS.optionLength)
  }
  return {
    name: name(from.name, 'daemon.name'),
    namespace: name(from.namespace, 'daemon.namespace'),
    logLevel: string(from.logLevel, 'daemon.logLevel', 16),
    ...(from.memoryLimit === undefined
      ? {}
      : { memoryLimit: integer(from.memoryLimit, 'daemon.memoryLimit', 1, Number.MAX_SAFE_INTEGER) }),
    options,
    ...(from.bridges === undefined ? {} : { bridges: bridges(from.bridges) }),
    ...(from.metrics === undefined ? {} : { metrics: metrics(from.metrics) }),
    ...(from.access === undefined ? {} : { access: access(from.access) }),
    ...counter(from, 'restarts', 'daemon'),
    ...counter(from, 'freshCircuits', 'daemon'),
  }
}

/** One that only grows. */
function counter<K extends string>(
  from: Record<string, unknown>,
  field: K,
  at: string,
): { [P in K]?: number } {
  if (from[field] === undefined) return {}
  const count = integer(from[field], `${at}.${field}`, 0, Number.MAX_SAFE_INTEGER)
  return { [field]: count } as { [P in K]?: number }
}

function metrics(value: unknown): NonNullable<TorTopology['daemon']['metrics']> {
  return object(value, 'daemon.metrics').addresses === true ? { addresses: true } : {}
}

function access(value: unknown): TorAccess {
  const { socks, httpConnect } = object(value, 'daemon.access')
  const found = {
    ...(socks === undefined ? {} : { socks: accessPort(socks, 'daemon.access.socks') }),
    ...(httpConnect === undefined
      ? {}
      : { httpConnect: accessPort(httpConnect, 'daemon.access.httpConnect') }),
  }
  unique(Object.values(found), (one) => String(one.port), 'daemon.access', 'port')
  return found
}

/** Any other word than All is no leave to go anywhere. */
function accessPort(value: unknown, at: string): AccessPort {
  const from = object(value, at)
  const { exit } = from
  if (exit !== 'Onions' && exit !== 'All') throw invalid(`${at}.exit`, 'is neither Onions nor All')
  return { port: port(from.port, `${at}.port`), exit }
}

function bridges(value: unknown): NonNullable<TorTopology['daemon']['bridges']> {
  const transport = string(object(value, 'daemon.bridges').transport, 'daemon.bridges.transport', 32)
  if (!TRANSPORT.test(transport)) {
    throw invalid('daemon.bridges.transport', 'is not the name of a transport such as obfs4')
  }
  return { transport }
}

function onion(value: unknown, at: string): OnionPlan {
  const from = object(value, at)
  const address = string(from.address, `${at}.address`, 56)
  if (!ADDRESS.test(address)) throw invalid(`${at}.address`, 'is not a v3 onion address without .onion')
  const ports = list(from.ports, `${at}.ports`, TOPOLOGY_LIMITS.portsPerOnion, onionPort)
  if (ports.length === 0) throw invalid(`${at}.ports`, 'is empty')
  unique(ports, (one) => String(one.virtualPort), `${at}.ports`, 'virtualPort')
  return {
    name: name(from.name, `${at}.name`),
    address,
    since: integer(from.since, `${at}.since`, 0, Number.MAX_SAFE_INTEGER),
    ports,
    ...(from.clients === undefined ? {} : { clients: clients(from.clients, `${at}.clients`) }),
    ...(from.circuitIds === true ? { circuitIds: true } : {}),
    ...(from.pow === undefined ? {} : { pow: pow(from.pow, `${at}.pow`) }),
    ...(from.streams === undefined ? {} : { streams: streams(from.streams, `${at}.streams`) }),
    ...counter(from, 'renewal', at),
  }
}

function watched(value: unknown, at: string): WatchPlan {
  const from = object(value, at)
  const address = string(from.address, `${at}.address`, 56)
  if (!ADDRESS.test(address)) throw invalid(`${at}.address`, 'is not a v3 onion address without .onion')
  return {
    namespace: name(from.namespace, `${at}.namespace`),
    name: name(from.name, `${at}.name`),
    address,
    port: port(from.port, `${at}.port`),
    ...(from.private === true ? { private: true } : {}),
    ...(from.http === undefined ? {} : { http: { path: path(from.http, `${at}.http`) } }),
    every: integer(from.every, `${at}.every`, WATCH_EVERY.least, WATCH_EVERY.most),
  }
}

/** Goes into a request as it is. */
function path(value: unknown, at: string): string {
  const text = string(object(value, at).path, `${at}.path`, 1024)
  if (!PATH_PATTERN.test(text)) throw invalid(`${at}.path`, 'is not a path such as /health')
  return text
}

/** An empty list is refused: to tor it would mean that everybody may connect. */
function clients(value: unknown, at: string): string[] {
  const found = list(value, at, TOPOLOGY_LIMITS.clientsPerOnion, (one, where) => {
    const client = string(one, where, 64)
    if (!CLIENT.test(client)) throw invalid(where, 'is not a public key in base32, 52 capitals and digits')
    return client
  })
  if (found.length === 0) throw invalid(at, 'is empty')
  unique(found, (one) => one, at, 'key')
  return found
}

function pow(value: unknown, at: string): NonNullable<OnionPlan['pow']> {
  const from = object(value, at)
  const rate = (field: string): number => integer(from[field], `${at}.${field}`, 0, 2 ** 31 - 1)
  return {
    ...(from.queueRate === undefined ? {} : { queueRate: rate('queueRate') }),
    ...(from.queueBurst === undefined ? {} : { queueBurst: rate('queueBurst') }),
  }
}

function streams(value: unknown, at: string): NonNullable<OnionPlan['streams']> {
  const from = object(value, at)
  const { closeCircuit } = from
  if (typeof closeCircuit !== 'boolean') throw invalid(`${at}.closeCircuit`, 'is neither true nor false')
  return { max: integer(from.max, `${at}.max`, 1, 65_535), closeCircuit }
}

function onionPort(value: unknown, at: string): OnionPort {
  const from = object(value, at)
  return {
    virtualPort: port(from.virtualPort, `${at}.virtualPort`),
    endpoints: list(from.endpoints, `${at}.endpoints`, TOPOLOGY_LIMITS.endpointsPerPort, endpoint),
  }
}

function endpoint(value: unknown, at: string): Endpoint {
  const from = object(value, at)
  const host = string(from.host, `${at}.host`, 64)
  if (isIP(host) === 0) throw invalid(`${at}.host`, 'is not an IP address')
  return { host, port: port(from.port, `${at}.port`) }
}

function proxy(value: unknown, at: string): ProxyPlan {
  const from = object(value, at)
  const targets = list(from.targets, `${at}.targets`, TOPOLOGY_LIMITS.targetsPerProxy, target)
  unique(targets, (one) => one.name, `${at}.targets`, 'name')
  return { name: name(from.name, `${at}.name`), targets }
}

function target(value: unknown, at: string): ProxyTarget {
  const from = object(value, at)
  const address = string(from.onion, `${at}.onion`, 255)
  if (!ONION.test(address)) throw invalid(`${at}.onion`, 'is not a v3 onion address with .onion')
  return {
    name: name(from.name, `${at}.name`),
    onion: address.toLowerCase(),
    port: port(from.port, `${at}.port`),
    listenPort: port(from.listenPort, `${at}.listenPort`),
    ...(from.authFile === undefined ? {} : { authFile: name(from.authFile, `${at}.authFile`) }),
  }
}

function invalid(at: string, what: string): PosternError {
  return new PosternError('TopologyInvalid', `${at} ${what}; what was in force stays in force`)
}

function object(value: unknown, at: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid(at, 'is not an object')
  return value as Record<string, unknown>
}

function list<T>(value: unknown, at: string, most: number, item: (value: unknown, at: string) => T): T[] {
  if (!Array.isArray(value)) throw invalid(at, 'is not a list')
  if (value.length > most) throw invalid(at, `has more than ${most} entries`)
  return value.map((one, index) => item(one, `${at}[${index}]`))
}

function string(value: unknown, at: string, most: number): string {
  if (typeof value !== 'string') throw invalid(at, 'is not a text')
  if (value.length > most) throw invalid(at, `has more than ${most} characters`)
  if (value.includes('\0')) throw invalid(at, 'has a NUL character')
  return value
}

function name(value: unknown, at: string): string {
  const text = string(value, at, 253)
  if (!NAME.test(text)) throw invalid(at, 'is not a name of lower-case letters, digits, dots and dashes')
  return text
}

function integer(value: unknown, at: string, least: number, most: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least || value > most) {
    throw invalid(at, `is not a whole number from ${least} to ${most}`)
  }
  return value
}

function port(value: unknown, at: string): number {
  return integer(value, at, 1, 65535)
}

function unique<T>(items: readonly T[], key: (item: T) => string, at: string, field: string): void {
  const seen = new Map<string, number>()
  items.forEach((item, index) => {
    const before = seen.get(key(item))
    if (before !== undefined) {
      throw invalid(`${at}[${index}].${field}`, `is the same as that of ${at}[${before}]`)
    }
    seen.set(key(item), index)
  })
}
