import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { BUNDLES, makeBundle } from '../scripts/build/bundles.ts'
import { environmentOf } from '../scripts/images/make.ts'
import { version } from '../src/cli/version.ts'
import { IMAGE } from '../test/faults/operator.ts'
import { freePorts } from '../testbed/tor-network/ports.ts'

const LIMIT = 120_000
const WRITING = ['PATCH', 'POST', 'PUT', 'DELETE']

/** The operator as its image runs it, as a process of this machine: its bundle, with the image's environment. */
export class BundledOperator implements AsyncDisposable {
  /** Milliseconds from its start until its caches were warm. */
  readonly warm: Promise<number>
  readonly #child: ChildProcess
  readonly #ended: Promise<string>
  readonly #metrics: number
  readonly #health: number
  #last = ''

  /** Makes the bundle. @returns its path */
  static async build(folder: string): Promise<string> {
    const spec = BUNDLES.find(({ name }) => name === 'postern')!
    return (await makeBundle(spec, folder, version())).file
  }

  /** Works without a Lease, whose renewals would be counted as writes. */
  static async start(bundle: string, kubeconfig: string): Promise<BundledOperator> {
    const [metrics, health] = (await freePorts(2)) as [number, number]
    return new BundledOperator(bundle, kubeconfig, metrics, health)
  }

  private constructor(bundle: string, kubeconfig: string, metrics: number, health: number) {
    this.#metrics = metrics
    this.#health = health
    const words = ['operator', '--kubeconfig', kubeconfig, '--no-leader-elect', '--tor-image', IMAGE]
    words.push('--metrics-address', `127.0.0.1:${metrics}`, '--health-address', `127.0.0.1:${health}`)
    const started = performance.now()
    this.#child = spawn(process.execPath, [bundle, ...words], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...environmentOf('postern'), POD_NAMESPACE: 'postern-system' },
    })
    this.#ended = new Promise((resolve) =>
      this.#child.once('close', (code, signal) => resolve(`${code ?? signal}, and said last: ${this.#last}`)),
    )
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    this.warm = promise
    this.warm.catch(() => {})
    createInterface({ input: this.#child.stderr! }).on('line', (line) => {
      this.#last = line.slice(0, 500)
      if (line.includes('"caches are warm"')) resolve(performance.now() - started)
    })
    void this.#ended.then((how) => reject(new Error(`the operator ended with ${how}`)))
    setTimeout(() => reject(new Error(`no warm caches; it said last: ${this.#last}`)), LIMIT).unref()
  }

  /** MB that it holds: now, and the most that it ever did. */
  memory(): { now: number; peak: number } {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'utf8')
    const read = (field: string): number =>
      Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024
    return { now: read('VmRSS'), peak: read('VmHWM') }
  }

  /** Whether `/readyz` says that it follows everything. */
  async ready(): Promise<boolean> {
    const response = await fetch(`http://127.0.0.1:${this.#health}/readyz`)
    await response.arrayBuffer()
    return response.status === 200
  }

  /** Sum of all series of a metric whose labels have what is given. */
  async metric(name: string, labels: Record<string, string> = {}): Promise<number> {
    return sum(await this.#scrape(), name, labels)
  }

  /** Turns that have ended, keys that wait or are worked on, and requests that write, whether or not they changed anything. */
  async work(): Promise<{ turns: number; open: number; writes: number }> {
    const text = await this.#scrape()
    const writes = WRITING.map((method) => sum(text, 'postern_rest_client_requests_total', { method }))
    return {
      turns: sum(text, 'postern_controller_reconcile_total'),
      open: sum(text, 'postern_workqueue_depth') + sum(text, 'postern_controller_active_workers'),
      writes: writes.reduce((total, one) => total + one, 0),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill('SIGTERM')
    await this.#ended
  }

  async #scrape(): Promise<string> {
    return await (await fetch(`http://127.0.0.1:${this.#metrics}/metrics`)).text()
  }
}

function sum(text: string, name: string, labels: Record<string, string> = {}): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .filter((line) => wanted.every((one) => line.includes(one)))
    .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' '))), 0)
}
