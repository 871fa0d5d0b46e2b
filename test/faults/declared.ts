import {
  CONFIG_MAP,
  type ConfigMap,
  DEPLOYMENT,
  NETWORK_POLICY,
  POD_DISRUPTION_BUDGET,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  type Secret,
  type Service,
} from '../../src/cluster/kinds.ts'
import type { ApiClient } from '../../src/cluster/kubernetes/api-client.ts'
import type { Condition } from '../../src/core/conditions.ts'
import { type Kind, keyOf, type Resource } from '../../src/core/resource.ts'
import { ONION_PROXY } from '../../src/tor/api/onion-proxy.ts'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'
import { TOR_DAEMON } from '../../src/tor/api/tor-daemon.ts'
import { IMAGE } from './operator.ts'
import type { Space } from './space.ts'

const OWNED: Kind[] = [
  CONFIG_MAP,
  DEPLOYMENT,
  NETWORK_POLICY,
  POD_DISRUPTION_BUDGET,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
]

/** All objects that matter, by `Kind namespace/name`, as the API server has them. */
export type Objects = Map<string, Resource>

export async function look(admin: ApiClient): Promise<Objects> {
  const ours = { labelSelector: 'app.kubernetes.io/managed-by=tor-operator' }
  const lists = await Promise.all([
    ...OWNED.map((kind) => all(admin, kind, ours)),
    ...[ONION_SERVICE, ONION_PROXY, TOR_DAEMON].map((kind) => all(admin, kind as Kind, {})),
  ])
  return new Map(lists.flat().map((object) => [`${object.kind} ${keyOf(object)}`, object]))
}

async function all(admin: ApiClient, kind: Kind, selection: object): Promise<Resource[]> {
  const items: Resource[] = []
  let token: string | undefined
  do {
    const page = await admin.list(kind, { ...selection, limit: 1000, ...(token && { continue: token }) })
    items.push(...page.items)
    token = page.continue
  } while (token !== undefined)
  return items
}

/** Says what of a space is not as its users declared it, a line each. It knows nothing of the operator's own planner. */
export class Judge {
  readonly #space: Space
  readonly #objects: Objects
  readonly #missing: string[] = []
  /** What was made here and should be. */
  readonly #expected = new Set<string>()

  constructor(space: Space, objects: Objects) {
    this.#space = space
    this.#objects = objects
  }

  missing(): string[] {
    const { onions, proxies, gone } = this.#space
    for (const daemon of this.#space.daemonNames()) this.#daemon(daemon)
    for (const name of [...onions.keys(), ...gone]) this.#expected.add(this.#id(SECRET, `${name}-onion-key`))
    for (const name of onions.keys()) this.#onion(name)
    for (const [name, { listenPorts }] of proxies) this.#proxy(name, listenPorts)
    for (const [id, { metadata }] of this.#objects) {
      if (metadata.namespace === this.#space.namespace && !this.#expected.has(id))
        this.#say(`${id} should be gone`)
    }
    return this.#missing
  }

  #daemon(name: string): void {
    const owner = this.#find<Resource>(TOR_DAEMON, name)
    if (owner === undefined) return
    const bound = <T extends { daemon: string }>(map: Map<string, T>): [string, T][] =>
      [...map].filter(([, { daemon }]) => daemon === name).sort(([a], [b]) => (a < b ? -1 : 1))
    const [onions, proxies] = [bound(this.#space.onions), bound(this.#space.proxies)]
    this.#topology(name, owner, onions, proxies)
    const keys = this.#owned<Secret>(SECRET, `${name}-keys`, owner)?.data ?? {}
    const held = Object.keys(keys).filter((file) => file.endsWith('.key'))
    const wanted = onions.map(([onion]) => `${onion}.key`)
    const extra = held.filter((file) => file !== 'report.key' && !wanted.includes(file))
    const lacking = wanted.filter((file) => !held.includes(file))
    if (extra.length + lacking.length > 0) this.#say(`${name}-keys has ${held}, not ${wanted}`)

    const deployment = this.#owned<Resource>(DEPLOYMENT, name, owner)
    const pod = (deployment?.spec as { template: { spec: { containers: { image: string }[] } } } | undefined)
      ?.template
    if (deployment !== undefined && pod?.spec.containers[0]?.image !== IMAGE)
      this.#say(`Deployment ${name}: its image`)
    this.#owned(SERVICE_ACCOUNT, name, owner)
    this.#owned(POD_DISRUPTION_BUDGET, name, owner)
    this.#owned(SERVICE, `${name}-metrics`, owner)
    const policy = this.#owned<Resource>(NETWORK_POLICY, name, owner)
    const rules = (policy?.spec as { ingress: { ports: { port: number }[] }[] } | undefined)?.ingress ?? []
    const open = rules.flatMap(({ ports }) => ports.map(({ port }) => port)).sort(numbers)
    const listen = proxies.flatMap(([, { listenPorts }]) => listenPorts)
    const expected = [9080, 9081, ...listen].sort(numbers)
    if (String(open) !== String(expected)) this.#say(`NetworkPolicy ${name} opens ${open}, not ${expected}`)
    this.#status(owner, ['Ready', 'TorBootstrapped', 'VersionSupported'])
  }

  #topology(
    name: string,
    owner: Resource,
    onions: [string, Space['onions'] extends Map<string, infer T> ? T : never][],
    proxies: [string, { listenPorts: number[] }][],
  ): void {
    const map = this.#owned<ConfigMap>(CONFIG_MAP, `${name}-topology`, owner)
    if (map === undefined) return
    const found = JSON.parse(map.data?.['topology.json'] ?? '{}') as {
      onions: { name: string; ports: { virtualPort: number; endpoints: unknown[] }[] }[]
      proxies: { name: string; targets: { listenPort: number }[] }[]
    }
    const wantedOnions = onions.map(([onion, { ports }]) => [
      onion,
      Object.entries(ports).map(([virtualPort, { service, port }]) => {
        const host = this.#space.services.get(service)
        return [Number(virtualPort), host === undefined ? [] : [{ host, port }]]
      }),
    ])
    const foundOnions = found.onions.map((one) => [
      one.name,
      one.ports.map(({ virtualPort, endpoints }) => [virtualPort, endpoints]),
    ])
    this.#same(`topology of ${name}, onions`, foundOnions, wantedOnions)
    const wantedProxies = proxies.map(([proxy, { listenPorts }]) => [proxy, listenPorts])
    const foundProxies = found.proxies.map((one) => [
      one.name,
      one.targets.map(({ listenPort }) => listenPort),
    ])
    this.#same(`topology of ${name}, proxies`, foundProxies, wantedProxies)
  }

  #onion(name: string): void {
    const onion = this.#find<Resource>(ONION_SERVICE, name)
    const secret = this.#find<Secret>(SECRET, `${name}-onion-key`)
    if (onion === undefined || secret === undefined) return
    const conditions = this.#status(onion, ['Ready', 'KeyValid', 'BackendReady', 'Published'])
    const hostname = Buffer.from(secret.data?.hostname ?? '', 'base64')
      .toString()
      .trim()
    this.#same(`hostname of ${name}`, (onion.status as { hostname?: string } | undefined)?.hostname, hostname)
    const { ports } = this.#space.onions.get(name)!
    const backed = Object.values(ports).every(({ service }) => this.#space.services.has(service))
    for (const [type, wanted] of [
      ['KeyValid', true],
      ['BackendReady', backed],
    ] as const) {
      const found = conditions.find((one) => one.type === type)
      if ((found?.status === 'True') !== wanted)
        this.#say(`${type} of ${name} is ${found?.status} ${found?.message}`)
    }
  }

  #proxy(name: string, listenPorts: number[]): void {
    const proxy = this.#find<Resource>(ONION_PROXY, name)
    if (proxy === undefined) return
    this.#status(proxy, ['Ready', 'PortsAccepted', 'TargetsReachable'])
    const service = this.#owned<Service>(SERVICE, name, proxy)
    const ports = service?.spec?.ports?.map(({ port }) => port) ?? []
    if (service !== undefined) this.#same(`ports of Service ${name}`, ports, listenPorts)
  }

  #status({ kind, metadata, status }: Resource, types: string[]): Condition[] {
    const { observedGeneration, conditions = [] } = (status ?? {}) as {
      observedGeneration?: number
      conditions?: Condition[]
    }
    const what = `${kind} ${metadata.name}`
    if (observedGeneration !== metadata.generation) {
      this.#say(`${what}: generation ${observedGeneration} observed of ${metadata.generation}`)
    }
    for (const type of types) {
      if (!conditions.some((one) => one.type === type)) this.#say(`${what}: no condition ${type}`)
    }
    return conditions
  }

  #owned<T extends Resource>(kind: Kind, name: string, owner: Resource): T | undefined {
    const found = this.#find<T>(kind, name)
    const owners = found?.metadata.ownerReferences ?? []
    if (found !== undefined && !owners.some(({ uid }) => uid === owner.metadata.uid)) {
      this.#say(`${kind.kind} ${name} is not of the present ${owner.kind} ${owner.metadata.name}`)
    }
    return found
  }

  #find<T extends Resource>(kind: Kind, name: string): T | undefined {
    const id = this.#id(kind, name)
    this.#expected.add(id)
    const found = this.#objects.get(id)
    if (found === undefined) this.#say(`no ${id}`)
    else if (found.metadata.deletionTimestamp !== undefined) this.#say(`${id} is being deleted`)
    return found as T | undefined
  }

  #id(kind: Kind, name: string): string {
    return `${kind.kind} ${this.#space.namespace}/${name}`
  }

  #same(what: string, found: unknown, wanted: unknown): void {
    const [left, right] = [JSON.stringify(found), JSON.stringify(wanted)]
    if (left !== right) this.#say(`${what}: ${left?.slice(0, 300)}, not ${right.slice(0, 300)}`)
  }

  #say(line: string): void {
    this.#missing.push(`${this.#space.namespace}: ${line}`)
  }
}

function numbers(a: number, b: number): number {
  return a - b
}
