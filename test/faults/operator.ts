import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { KUBERNETES_KINDS } from '../../src/cluster/kinds.ts'
import { type CacheState, KubernetesCluster } from '../../src/cluster/kubernetes/cluster.ts'
import { connect, loadSettings } from '../../src/cluster/kubernetes/connect.ts'
import { messageOf } from '../../src/core/errors.ts'
import type { Logger } from '../../src/core/logger.ts'
import { TOR_KINDS } from '../../src/tor/api/kinds.ts'
import type { TorSettings } from '../../src/tor/operator/observed.ts'
import { type PreparedTorOperator, prepareTorOperator } from '../../src/tor/operator/operator.ts'
import { freePorts } from '../../testbed/tor-network/ports.ts'
import type { FaultProxy } from './fault-proxy.ts'
import { describeCall } from './requests.ts'

export const IMAGE = 'registry.example/postern-tor:faults'

const SETTINGS: TorSettings = {
  loopbackBackends: false,
  serviceDns: true,
  image: IMAGE,
  lingerSeconds: 30,
  volumesLag: true,
  companions: true,
  networkPolicies: true,
  operatorNamespace: 'postern-system',
}

export interface OperatorOptions {
  /** Default all. */
  namespaces?: string[]
  /** Least life of a watch. */
  watchSeconds?: number
}

export interface Line {
  level: string
  msg: string
  [field: string]: unknown
}

/** The tor controller in this process. */
export class Operator implements AsyncDisposable {
  readonly log: Line[] = []
  readonly relists: string[] = []
  readonly #close: () => Promise<void>
  readonly #cluster: KubernetesCluster
  #prepared: PreparedTorOperator | undefined
  /** Resolves once its caches are warm and it works. */
  readonly working: Promise<void>

  constructor(kubeconfig: string, { namespaces, watchSeconds }: OperatorOptions = {}) {
    const api = connect(loadSettings({ kubeconfig }), { component: 'test', version: '0.0.0' })
    const log = this.#logger()
    this.#cluster = new KubernetesCluster(api, {
      log,
      kinds: [...KUBERNETES_KINDS, ...TOR_KINDS],
      hooks: { onRelist: ({ plural }) => this.relists.push(plural) },
      ...(namespaces === undefined ? {} : { namespaces }),
      ...(watchSeconds === undefined ? {} : { watchSeconds }),
    })
    this.working = this.#work(log)
    this.working.catch(() => {})
    this.#close = async () => {
      await this.#prepared?.close()
      await this.#cluster.close()
      await api.close()
    }
  }

  static async start(kubeconfig: string, options?: OperatorOptions): Promise<Operator> {
    const operator = new Operator(kubeconfig, options)
    await operator.working
    return operator
  }

  states(): CacheState[] {
    return this.#cluster.states()
  }

  /** What it is not following just now, and why. */
  troubles(): string[] {
    return this.states().flatMap(({ name, synced, error }) => {
      if (error !== undefined) return [`${name}: ${error}`]
      return synced ? [] : [`${name}: not listed yet`]
    })
  }

  lines(...levels: string[]): Line[] {
    return this.log.filter(({ level }) => levels.includes(level))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close()
  }

  async #work(log: Logger): Promise<void> {
    this.#prepared = await prepareTorOperator({ cluster: this.#cluster, settings: SETTINGS, log })
    this.#prepared.start()
  }

  #logger(): Logger {
    const line =
      (level: string) =>
      (fields: object, msg: string): void =>
        void this.log.push({ level, msg, ...fields })
    return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }
  }
}

/** `postern operator` as a process of its own. */
export class OperatorProcess implements AsyncDisposable {
  readonly child: ChildProcess
  readonly log: Line[] = []
  /** Exit code, or the signal's name. */
  readonly ended: Promise<number | string>
  readonly #health: number
  readonly #metrics: number
  #output = ''

  static async start(kubeconfig: string, ...words: string[]): Promise<OperatorProcess> {
    return new OperatorProcess(kubeconfig, (await freePorts(2)) as [number, number], words)
  }

  private constructor(kubeconfig: string, [health, metrics]: [number, number], words: string[]) {
    this.#health = health
    this.#metrics = metrics
    const postern = join(import.meta.dirname, '..', '..', 'bin', 'postern')
    const settings = ['--kubeconfig', kubeconfig, '--tor-image', IMAGE, '--log-level', 'debug']
    const addresses = ['--metrics-address', `127.0.0.1:${metrics}`, '--health-address', `127.0.0.1:${health}`]
    this.child = spawn(postern, ['operator', ...settings, ...addresses, ...words], {
      env: { PATH: process.env.PATH, HOME: '/nowhere', POD_NAMESPACE: 'postern-system' },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let rest = ''
    this.child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
      this.#output += chunk
      const lines = (rest + chunk).split('\n')
      rest = lines.pop()!
      for (const line of lines) if (line.startsWith('{')) this.log.push(JSON.parse(line) as Line)
    })
    this.ended = new Promise((resolve) =>
      this.child.once('close', (code, signal) => resolve(code ?? signal ?? '?')),
    )
  }

  get output(): string {
    return this.#output
  }

  /** What `/readyz` says is wrong, a line each; or why nobody is there to say it. */
  async troubles(): Promise<string[]> {
    const response = await fetch(`http://127.0.0.1:${this.#health}/readyz`).catch((error: Error) => error)
    if (response instanceof Error) {
      const { exitCode, signalCode } = this.child
      const ended = exitCode === null && signalCode === null ? '' : `, ended with ${exitCode ?? signalCode}`
      return [
        `no answer: ${messageOf(response.cause ?? response)}${ended}`,
        ...this.#output.trim().split('\n').slice(-5),
      ]
    }
    const text = await response.text()
    return response.status === 200 ? [] : text.trim().split('\n')
  }

  /** host:port of `/metrics`. */
  get metricsAddress(): string {
    return `127.0.0.1:${this.#metrics}`
  }

  /** A figure of `/metrics`, by its name and labels as they stand there. */
  async metric(name: string): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${this.#metrics}/metrics`)
    const line = (await response.text()).split('\n').find((one) => one.startsWith(`${name} `))
    return Number(line?.slice(name.length))
  }

  /** Resident, in MB: now, and at its peak. */
  memory(): { now: number; peak: number } {
    const status = readFileSync(`/proc/${this.child.pid}/status`, 'utf8')
    const read = (field: string): number =>
      Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024
    return { now: Math.round(read('VmRSS')), peak: Math.round(read('VmHWM')) }
  }

  said(message: string): Line | undefined {
    return this.log.find(({ msg }) => msg === message)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL')
    await this.ended
  }
}

/** What was written since `forget`, as lines: for a world in which nothing is to be written. */
export function written(proxy: FaultProxy, ...without: string[]): string[] {
  return proxy.writes(...without).map(describeCall)
}
