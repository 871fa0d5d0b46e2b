import type { Service } from '../../src/cluster/kinds.ts'
import { ENDPOINT_SLICE, SERVICE } from '../../src/cluster/kinds.ts'
import type { ApiClient } from '../../src/cluster/kubernetes/api-client.ts'
import type { Kind, Resource } from '../../src/core/resource.ts'
import { ONION_PROXY } from '../../src/tor/api/onion-proxy.ts'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'
import { TOR_DAEMON } from '../../src/tor/api/tor-daemon.ts'

/** Who declares. */
export const USER: string = 'a-user'
export const FOREIGN_ONION: string = 'libera75jm6of4wxpxt4aynol3xjmbtxgfyjpu34ss4d7r7q2v5zrpyd.onion'

export interface DeclaredOnion {
  /** By virtual port. */
  ports: Record<number, { service: string; port: number }>
  /** Name of its TorDaemon. */
  daemon: string
}

export interface DeclaredProxy {
  listenPorts: number[]
  daemon: string
}

/** A namespace with what its users declare in it, and how they change it. */
export class Space {
  readonly namespace: string
  readonly onions: Map<string, DeclaredOnion> = new Map()
  readonly proxies: Map<string, DeclaredProxy> = new Map()
  /** Those that users declare themselves. */
  readonly daemons: Set<string> = new Set()
  /** Services that onions lead to, with their cluster addresses. */
  readonly services: Map<string, string> = new Map()
  /** Onions that are gone: their keys stay. */
  readonly gone: Set<string> = new Set()
  readonly #admin: ApiClient

  constructor(admin: ApiClient, namespace: string) {
    this.#admin = admin
    this.namespace = namespace
  }

  /** Declares an object, or changes it. */
  async apply<T extends Resource>(kind: Kind<T>, name: string, content: object): Promise<T> {
    const { labels, annotations, ...rest } = content as { labels?: object; annotations?: object }
    const metadata = {
      namespace: this.namespace,
      name,
      ...(labels && { labels }),
      ...(annotations && { annotations }),
    }
    const object = { apiVersion: kind.apiVersion, kind: kind.kind, metadata, ...rest } as unknown as T
    return (await this.#admin.apply(kind, object, { fieldManager: USER })).object
  }

  get<T extends Resource>(kind: Kind<T>, name: string): Promise<T> {
    return this.#admin.get(kind, { namespace: this.namespace, name })
  }

  async remove(kind: Kind, name: string): Promise<void> {
    await this.#admin.remove(kind, { namespace: this.namespace, name })
  }

  /** A Service with an endpoint that is ready. */
  async service(name: string, port = 80): Promise<void> {
    const { spec } = await this.apply<Service>(SERVICE, name, { spec: { ports: [{ name: 'http', port }] } })
    await this.apply(ENDPOINT_SLICE, `${name}-1`, {
      labels: { 'kubernetes.io/service-name': name },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.20.30.40'], conditions: { ready: true } }],
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    })
    this.services.set(name, spec?.clusterIP ?? '')
  }

  async onion(name: string, onion: Partial<DeclaredOnion> = {}): Promise<void> {
    const { ports = { 80: { service: 'web', port: 80 } }, daemon = 'tor' } = onion
    await this.apply(ONION_SERVICE, name, {
      spec: {
        ports: Object.entries(ports).map(([virtualPort, backend]) => ({
          virtualPort: Number(virtualPort),
          backend,
        })),
        ...(daemon === 'tor' ? {} : { daemonRef: { name: daemon } }),
      },
    })
    this.onions.set(name, { ports, daemon })
    this.gone.delete(name)
  }

  async removeOnion(name: string): Promise<void> {
    await this.remove(ONION_SERVICE, name)
    this.onions.delete(name)
    this.gone.add(name)
  }

  async proxy(name: string, listenPorts: number[], daemon = 'tor'): Promise<void> {
    await this.apply(ONION_PROXY, name, {
      spec: {
        targets: listenPorts.map((listenPort) => ({
          name: `port-${listenPort}`,
          onion: FOREIGN_ONION,
          port: 6697,
          listenPort,
        })),
        ...(daemon === 'tor' ? {} : { daemonRef: { name: daemon } }),
      },
    })
    this.proxies.set(name, { listenPorts, daemon })
  }

  async removeProxy(name: string): Promise<void> {
    await this.remove(ONION_PROXY, name)
    this.proxies.delete(name)
  }

  async daemon(name: string, spec: object = {}): Promise<void> {
    await this.apply(TOR_DAEMON, name, { spec })
    this.daemons.add(name)
  }

  async removeDaemon(name: string): Promise<void> {
    await this.remove(TOR_DAEMON, name)
    this.daemons.delete(name)
  }

  /** Names of the daemons that there should be. */
  daemonNames(): string[] {
    const bound = [...this.onions.values(), ...this.proxies.values()].some(({ daemon }) => daemon === 'tor')
    return [...new Set([...this.daemons, ...(bound ? ['tor'] : [])])]
  }
}
