import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { SERVICE } from '../src/cluster/kinds.ts'
import type { ApiClient } from '../src/cluster/kubernetes/api-client.ts'
import { connect, loadSettings } from '../src/cluster/kubernetes/connect.ts'
import type { Kind, Resource } from '../src/core/resource.ts'
import { ONION_SERVICE } from '../src/tor/api/onion-service.ts'
import { TOR_DAEMON } from '../src/tor/api/tor-daemon.ts'
import { reached } from '../test/e2e/visit.ts'
import * as site from '../test/node/site.ts'
import { OPERATOR_NAMESPACE, openStage, type Stage } from '../test/node/stage.ts'
import { LazyCluster } from '../testbed/kubernetes/lazy-cluster.ts'
import { podProcesses } from '../testbed/kubernetes/node/node.ts'
import type { Report } from './figure.ts'

/*
 * What a user of a cluster waits for, on a real node. The bars stand beside what two other operators do on the same
 * test bed (one in Go, one in Rust, a pod and a tor for each onion); both are in docs/benchmarks.md.
 */

const RUNS = Number(process.env.POSTERN_BENCH_RUNS ?? 3)
const TEN = Array.from({ length: 10 }, (_, index) => `ten-${index}`)
const OURS = 'app.kubernetes.io/managed-by=tor-operator'

interface Bar {
  figure: string
  unit: string
  most: number
}

const BARS = {
  first: { figure: 'first OnionService in an empty cluster, fetched', unit: 's', most: 5.5 },
  second: { figure: 'second one in the namespace, fetched', unit: 's', most: 2.5 },
  ten: { figure: 'ten at once, all fetched', unit: 's', most: 8 },
  port: { figure: 'backend port changed: failed visits of 100', unit: 'visits', most: 0 },
  replacedByPort: { figure: 'backend port changed: pods replaced', unit: 'pods', most: 0 },
  remade: { figure: 'backend Service deleted and made anew, fetched', unit: 's', most: 2 },
  killed: { figure: 'kill -9 tor, fetched', unit: 's', most: 5 },
  deleted: { figure: 'pod deleted: failed visits of a client that retries once', unit: 'visits', most: 0 },
  missing: { figure: 'backend Service missing for 60 s, then made, fetched', unit: 's', most: 3 },
  memory: { figure: 'memory of operator and 10 onions, RSS of all pods', unit: 'MB', most: 240 },
  further: { figure: 'memory of each further onion', unit: 'MB', most: 1 },
  pods: { figure: 'pods for 10 onions, operator included', unit: 'pods', most: 2 },
} satisfies Record<string, Bar>

type Taken = Record<keyof typeof BARS, number>

/** Each figure is the middle one of three runs, each in a namespace of its own. */
export async function node(report: Report): Promise<void> {
  const cluster = new LazyCluster()
  try {
    const access = await cluster.accessWithNode()
    await using stage = await openStage(access)
    const api = connect(loadSettings({ kubeconfig: access.kubeconfig }), { component: 'bench', version: '0' })
    await stage.kubectl(['apply', '--server-side', '-k', stage.deployFolder])
    const deployment = 'deployment/postern-operator'
    await stage.kubectl(['scale', '-n', OPERATOR_NAMESPACE, deployment, '--replicas=1'])
    await stage.kubectl(['rollout', 'status', '-n', OPERATOR_NAMESPACE, deployment, '--timeout=120s'])
    const runs: Taken[] = []
    for (let index = 0; index < RUNS; index++) runs.push(await new Run(stage, api, `run-${index}`).take())
    for (const [name, { figure, unit, most }] of Object.entries(BARS)) {
      const values = runs.map((run) => run[name as keyof Taken]).sort((a, b) => a - b)
      const value = values[Math.floor(RUNS / 2)]!
      report({ figure, value, unit, bar: `<= ${most} ${unit}`, ok: value <= most })
    }
    await api.close()
  } finally {
    await cluster.stop()
  }
}

class Run {
  readonly #stage: Stage
  readonly #api: ApiClient
  readonly #namespace: string

  constructor(stage: Stage, api: ApiClient, namespace: string) {
    this.#stage = stage
    this.#api = api
    this.#namespace = namespace
  }

  async take(): Promise<Taken> {
    const namespace = this.#namespace
    await this.#stage.apply(site.namespaceObject(namespace))
    await this.#stage.apply(...site.siteObjects(namespace, 'web', `page of ${namespace}`, 80))
    await this.#stage.kubectl(['wait', '-n', namespace, '--for=condition=Ready', 'pod/web', '--timeout=60s'])
    const first = await this.#seconds(async () => {
      await this.#apply(TOR_DAEMON, site.daemonObject(this.#stage, namespace) as Resource)
      await this.#publish('first')
    })
    const second = await this.#seconds(() => this.#publish('second'))
    const ten = await this.#seconds(() => Promise.all(TEN.map((name) => this.#publish(name))))
    await this.#drop('first', 'second')
    const [pods, memory] = [await this.#pods(), await this.#memory()]
    await Promise.all(TEN.map((name) => this.#publish(`more-${name}`)))
    const further = ((await this.#memory()) - memory) / TEN.length
    await this.#drop(...TEN.map((name) => `more-${name}`))
    const port = await this.#portChanged()
    const taken = {
      first,
      second,
      ten,
      ...port,
      remade: await this.#serviceRemade(),
      killed: await this.#torKilled(),
      deleted: await this.#podDeleted(),
      missing: await this.#serviceMissing(),
      memory,
      further,
      pods: pods.length + 1,
    }
    await this.#stage.kubectl(['delete', 'namespace', namespace, '--timeout=180s'])
    return taken
  }

  /** A Service with another port, and the OnionService that follows, while visitors come. */
  async #portChanged(): Promise<{ port: number; replacedByPort: number }> {
    const before = await this.#pods()
    const hostname = await this.#hostname('ten-0')
    let [visits, failed] = [0, 0]
    const visitor = async (): Promise<void> => {
      while (visits < 100) {
        visits++
        await site.visit(this.#stage, hostname).catch(() => failed++)
      }
    }
    const visiting = Promise.all([visitor(), visitor(), visitor(), visitor()])
    await site.until('visitors to come', async () => (visits > 20 ? true : undefined))
    await this.#apply(SERVICE, this.#service('web', 8081))
    await this.#apply(ONION_SERVICE, site.onionObject(this.#namespace, 'ten-0', 'web', 8081) as Resource)
    await visiting
    await this.#apply(SERVICE, this.#service('web', 80))
    await this.#apply(ONION_SERVICE, site.onionObject(this.#namespace, 'ten-0', 'web', 80) as Resource)
    await this.#visited('ten-0')
    const after = await this.#pods()
    return { port: failed, replacedByPort: after.filter((uid) => !before.includes(uid)).length }
  }

  async #serviceRemade(): Promise<number> {
    const ref = { namespace: this.#namespace, name: 'web' }
    await this.#api.remove(SERVICE, ref)
    await site.until('the Service to be missed', async () => {
      const { reason } =
        site.conditionOf(await this.#api.get(ONION_SERVICE, this.#ref('ten-0')), 'Ready') ?? {}
      return reason === 'ServiceNotFound' ? true : undefined
    })
    return this.#seconds(async () => {
      await this.#apply(SERVICE, this.#service('web', 80))
      await this.#visited('ten-0')
    })
  }

  async #torKilled(): Promise<number> {
    const [uid] = await this.#pods()
    const pids = await podProcesses(this.#stage.access.node, uid!)
    const tor = pids.find((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'tor')
    return this.#seconds(async () => {
      process.kill(tor!, 'SIGKILL')
      await pause(50)
      await this.#visited('ten-0')
    })
  }

  async #podDeleted(): Promise<number> {
    const [before] = await this.#list()
    const hostname = await this.#hostname('ten-0')
    const text = `page of ${this.#namespace}`
    const visitors = [1, 2, 3].map(() => new site.Visitor(this.#stage, hostname, text))
    const { name } = before!.metadata
    await this.#stage.kubectl(['delete', 'pod', '-n', this.#namespace, name, '--wait=false'])
    await site.until('the successor alone', async () => {
      const pods = await this.#list()
      const [pod] = pods
      const successor = pods.length === 1 && pod!.metadata.uid !== before!.metadata.uid
      return successor && site.conditionOf(pod!, 'Ready')?.status === 'True' ? true : undefined
    })
    await Promise.all(visitors.map((visitor) => visitor.end()))
    return visitors.reduce((sum, visitor) => sum + visitor.failures.length, 0)
  }

  async #serviceMissing(): Promise<number> {
    await this.#apply(ONION_SERVICE, site.onionObject(this.#namespace, 'late', 'late', 80) as Resource)
    await pause(60_000)
    return this.#seconds(async () => {
      await this.#apply(SERVICE, this.#service('late', 80))
      await this.#visited('late')
    })
  }

  async #publish(name: string): Promise<void> {
    await this.#apply(ONION_SERVICE, site.onionObject(this.#namespace, name, 'web', 80) as Resource)
    await this.#visited(name)
  }

  /** Like a user with the address in hand: who asks before it is published has to wait for nothing but that. */
  async #visited(name: string): Promise<void> {
    await site.until(`${name} to be published`, async () => {
      const onion = await this.#api.get(ONION_SERVICE, this.#ref(name))
      return site.conditionOf(onion, 'Published')?.status === 'True' ? true : undefined
    })
    await reached(this.#stage.tor.socksPort, await this.#hostname(name), `page of ${this.#namespace}`)
  }

  async #hostname(name: string): Promise<string> {
    const onion = await this.#api.get(ONION_SERVICE, this.#ref(name))
    return onion.status!.hostname!
  }

  async #drop(...names: string[]): Promise<void> {
    await Promise.all(names.map((name) => this.#api.remove(ONION_SERVICE, this.#ref(name))))
  }

  #service(name: string, port: number): Resource {
    return {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: this.#namespace, name },
      spec: { selector: { app: 'web' }, ports: [{ port, targetPort: 8080, protocol: 'TCP' }] },
    }
  }

  #ref(name: string): { namespace: string; name: string } {
    return { namespace: this.#namespace, name }
  }

  async #apply(kind: Kind, object: Resource): Promise<void> {
    await this.#api.apply(kind, object, { fieldManager: 'kubectl' })
  }

  #list(): Promise<Resource[]> {
    return this.#stage.list('pods', '-n', this.#namespace, '-l', OURS)
  }

  /** UIDs of the daemons' pods. */
  async #pods(): Promise<string[]> {
    return (await this.#list()).map((pod) => pod.metadata.uid!)
  }

  /** MB of all processes of the operator's and the daemon's pods. */
  async #memory(): Promise<number> {
    const operator = await this.#stage.list('pods', '-n', OPERATOR_NAMESPACE)
    const uids = [...(await this.#pods()), ...operator.map((pod) => pod.metadata.uid!)]
    let kilobytes = 0
    for (const uid of uids) {
      for (const pid of await podProcesses(this.#stage.access.node, uid)) {
        const status = readFileSync(`/proc/${pid}/status`, 'utf8')
        kilobytes += Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0)
      }
    }
    return kilobytes / 1000
  }

  async #seconds(work: () => Promise<unknown>): Promise<number> {
    const began = performance.now()
    await work()
    return (performance.now() - began) / 1000
  }
}
