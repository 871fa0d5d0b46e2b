import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import {
  CONFIG_MAP,
  ENDPOINT_SLICE,
  NAMESPACE,
  NETWORK_POLICY,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
} from '../../src/cluster/kinds.ts'
import type { ApiClient } from '../../src/cluster/kubernetes/api-client.ts'
import { connect, loadSettings } from '../../src/cluster/kubernetes/connect.ts'
import { type Kind, keyOf, type Resource } from '../../src/core/resource.ts'
import { TOR_KINDS } from '../../src/tor/api/kinds.ts'
import type { KubernetesAccess } from '../../testbed/kubernetes/access.ts'
import { type ControlPlane, startControlPlane } from '../../testbed/kubernetes/control-plane.ts'
import { kubectl } from '../../testbed/kubernetes/kubectl.ts'
import { Judge, look } from './declared.ts'
import { eventually, none, type Seen, seconds } from './eventually.ts'
import { FaultProxy } from './fault-proxy.ts'
import { type Operator, written } from './operator.ts'
import { Space, USER } from './space.ts'

export const CRDS: string = join(import.meta.dirname, '../../deploy/base/crds')

export interface WorldOptions {
  /** Whether our kinds are installed; default true. */
  kinds?: boolean
  /** More flags of the API server. */
  apiserver?: string[]
}

/** A control plane of a test file's own, with the kinds installed, and what users declare in it. */
export class World implements AsyncDisposable {
  readonly bed: ControlPlane
  /** As the admin, past every proxy. */
  readonly admin: ApiClient
  readonly spaces: Space[] = []
  #bystanders = new Map<string, string>()
  #proxies = 0

  static async start(options: WorldOptions = {}): Promise<World> {
    const state = await mkdtemp(join(tmpdir(), 'ptf-'))
    try {
      const { apiserver = [] } = options
      const bed = await startControlPlane({ state, apiserver })
      const world = new World(bed)
      if (options.kinds !== false) await world.installKinds()
      await world.#bystand()
      return world
    } catch (error) {
      await rm(state, { recursive: true, force: true })
      throw error
    }
  }

  private constructor(bed: ControlPlane) {
    this.bed = bed
    const { kubeconfig } = bed.access
    this.admin = connect(loadSettings({ kubeconfig }), { component: 'test-admin', version: '0.0.0' })
  }

  get access(): KubernetesAccess {
    return this.bed.access
  }

  async installKinds(): Promise<void> {
    await this.kubectl('apply', '--server-side', '--force-conflicts', '-f', CRDS)
    const names = TOR_KINDS.map((kind) => `crd/${kind.plural}.tor.fr0st.dev`)
    await this.kubectl('wait', '--for=condition=Established', ...names, '--timeout=120s')
  }

  kubectl(...args: string[]): Promise<string> {
    return kubectl(args, this.access)
  }

  /** As a user does it: with another field manager than ours, and forced. */
  async apply(
    kind: Kind,
    content: { metadata: object; [field: string]: unknown },
    fieldManager: string = USER,
  ): Promise<Resource> {
    const object = { apiVersion: kind.apiVersion, kind: kind.kind, ...content } as Resource
    return (await this.admin.apply(kind, object, { fieldManager })).object
  }

  async namespace(name: string): Promise<void> {
    await this.apply(NAMESPACE, { metadata: { name } })
  }

  async space(namespace: string): Promise<Space> {
    await this.namespace(namespace)
    const space = new Space(this.admin, namespace)
    this.spaces.push(space)
    return space
  }

  /** The usual: two namespaces with a backend, onions and a proxy; in the second also a daemon that its user declares. */
  async usual(prefix: string): Promise<[Space, Space]> {
    const [one, other] = [await this.space(`${prefix}-one`), await this.space(`${prefix}-other`)]
    for (const space of [one, other]) {
      await space.service('web')
      await space.onion('web')
      await space.onion('blog', {
        ports: { 80: { service: 'web', port: 80 }, 443: { service: 'absent', port: 443 } },
      })
      await space.proxy('irc', [6697, 7000])
    }
    await other.daemon('second', { logLevel: 'info' })
    await other.onion('news', { daemon: 'second' })
    return [one, other]
  }

  /** A proxy of its own for each operator; as the admin unless it is told who. */
  proxy(user?: { certificate: string; key: string }): Promise<FaultProxy> {
    const name = String(this.#proxies++)
    return FaultProxy.start(this.access, { name, ...(user && { user }) })
  }

  /** Waits until the world is as declared; gives milliseconds. */
  async declared(limit = 120_000, seen: () => string[] = () => []): Promise<number> {
    const missing = async (): Promise<Seen> => {
      const objects = await look(this.admin)
      const lines = this.spaces.flatMap((space) => new Judge(space, objects).missing())
      return lines.length === 0 || [...lines, ...seen()]
    }
    return await eventually('the world to be as declared', missing, limit)
  }

  /** What the operator had no business with and was changed all the same, a line each. */
  async touched(): Promise<string[]> {
    const now = await this.#versions()
    const lines: string[] = []
    for (const [id, version] of this.#bystanders) {
      if (now.get(id) !== version) lines.push(`${id}: was ${version}, is ${now.get(id) ?? 'gone'}`)
    }
    for (const space of this.spaces) {
      for (const name of space.services.keys()) {
        const service = await space.get(SERVICE, name)
        const managers = managersOf(service).filter((manager) => manager.startsWith('postern'))
        if (managers.length > 0) lines.push(`Service ${keyOf(service)} was written by ${managers}`)
      }
    }
    return lines
  }

  /**
   * How every test of a fault ends: the world as declared, nothing else touched, and no write once it is.
   * Prints the time since the fault was over.
   */
  async settled(
    t: TestContext,
    operator: Operator,
    proxy: FaultProxy,
    since: number,
    what: string,
    limit = 90_000,
  ): Promise<void> {
    await this.declared(limit, () => [
      ...operator.troubles(),
      ...operator
        .lines('warn', 'error')
        .slice(-5)
        .map((line) => JSON.stringify(line)),
    ])
    t.diagnostic(`${what}: the world as declared after ${seconds(performance.now() - since)}`)
    await eventually('everything to be followed', () => none(operator.troubles()))
    await quiet(proxy)
    const lines = await this.touched()
    if (lines.length > 0) throw new Error(`touched what it should not:\n${lines.join('\n')}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.admin.close()
    await this.bed.stop()
    await rm(this.bed.state, { recursive: true, force: true })
  }

  /** Objects that look like ours by name, in a namespace where nothing is declared. */
  async #bystand(): Promise<void> {
    const namespace = 'bystander'
    await this.namespace(namespace)
    const metadata = (name: string): object => ({ namespace, name })
    await this.apply(CONFIG_MAP, { metadata: metadata('tor-topology'), data: { a: 'b' } })
    await this.apply(SECRET, { metadata: metadata('tor-keys'), stringData: { a: 'b' } })
    await this.apply(SERVICE_ACCOUNT, { metadata: metadata('tor') })
    await this.apply(SERVICE, { metadata: metadata('tor-metrics'), spec: { ports: [{ port: 80 }] } })
    await this.apply(NETWORK_POLICY, { metadata: metadata('tor'), spec: { podSelector: {} } })
    this.#bystanders = await this.#versions()
  }

  async #versions(): Promise<Map<string, string>> {
    const kinds: Kind[] = [CONFIG_MAP, SECRET, SERVICE_ACCOUNT, SERVICE, NETWORK_POLICY, ENDPOINT_SLICE]
    const lists = await Promise.all(kinds.map((kind) => this.admin.list(kind, { namespace: 'bystander' })))
    // What the cluster itself makes there comes in its own time.
    const own = lists.flatMap(({ items }) => items).filter((object) => managersOf(object).includes(USER))
    return new Map(
      own.map((object) => [`${object.kind} ${keyOf(object)}`, object.metadata.resourceVersion ?? '']),
    )
  }
}

/** Waits until the operator has written nothing for a while: a fight would never end. */
export async function quiet(proxy: FaultProxy, limit = 60_000): Promise<void> {
  let before = -1
  let since = performance.now()
  await eventually(
    'no more writes',
    () => {
      const count = proxy.writes('leases').length
      if (count !== before) since = performance.now()
      before = count
      return performance.now() - since > 1_500 || written(proxy, 'leases').slice(-10)
    },
    limit,
  )
}

export function managersOf(object: Resource): string[] {
  const { managedFields = [] } = object.metadata as { managedFields?: { manager?: string }[] }
  return managedFields.map(({ manager = '' }) => manager)
}
