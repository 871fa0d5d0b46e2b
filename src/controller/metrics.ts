import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { WorkObserver } from './queue.ts'

/** Seconds: from a plan that changes nothing to one that waits for a slow API server. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
const METHODS = ['GET', 'POST', 'PATCH', 'DELETE', 'PUT']

export interface MetricsOptions {
  registry: Registry
  /** Of Postern. */
  version: string
  /** Seconds of a clock that never jumps. */
  clock?: () => number
}

/**
 * What Prometheus sees of an operator's process: the series of controller-runtime under the prefix `postern_`. All
 * labels are bounded: names of controllers, kinds, HTTP methods and status codes.
 */
export class OperatorMetrics {
  readonly #clock: () => number
  readonly #reconciles: Counter<'controller' | 'result'>
  readonly #errors: Counter<'controller'>
  readonly #time: Histogram<'controller'>
  readonly #workers: Gauge<'controller'>
  readonly #active: Gauge<'controller'>
  readonly #writes: Counter<'controller'>
  readonly #depth: Gauge<'name'>
  readonly #adds: Counter<'name'>
  readonly #waited: Histogram<'name'>
  readonly #worked: Histogram<'name'>
  readonly #retries: Counter<'name'>
  readonly #requests: Counter<'code' | 'method'>
  readonly #requestTime: Histogram<'verb'>
  readonly #leads: Gauge<'name'>
  readonly #restarts: Counter<'kind'>
  readonly #relists: Counter<'kind'>
  /** When the turn of each key that is worked on began, by queue. */
  readonly #turns = new Map<string, Map<string, number>>()

  constructor(options: MetricsOptions) {
    const { registry, version, clock = () => performance.now() / 1000 } = options
    this.#clock = clock
    const registers = [registry]
    const counter = <L extends string>(name: string, help: string, ...labelNames: L[]): Counter<L> =>
      new Counter({ name: `postern_${name}`, help, labelNames, registers })
    const gauge = <L extends string>(name: string, help: string, ...labelNames: L[]): Gauge<L> =>
      new Gauge({ name: `postern_${name}`, help, labelNames, registers })
    const histogram = <L extends string>(name: string, help: string, ...labelNames: L[]): Histogram<L> =>
      new Histogram({ name: `postern_${name}`, help, labelNames, registers, buckets: BUCKETS })

    this.#reconciles = counter(
      'controller_reconcile_total',
      'Turns that a controller took on a key, by how they ended: success, requeue_after (looks again at a known time) or error (tries again with back-off).',
      'controller',
      'result',
    )
    this.#errors = counter(
      'controller_reconcile_errors_total',
      "Turns that ended with an error. A user's mistake is a condition of its object, and no error.",
      'controller',
    )
    this.#time = histogram('controller_reconcile_time_seconds', 'How long a turn took.', 'controller')
    this.#workers = gauge(
      'controller_max_concurrent_reconciles',
      'Keys that a controller works on at the same time, at most.',
      'controller',
    )
    this.#active = gauge(
      'controller_active_workers',
      'Keys that a controller works on right now.',
      'controller',
    )
    this.#writes = counter(
      'controller_writes_total',
      'Writes to the cluster that changed something: 0 a turn in a world that is as it should be.',
      'controller',
    )
    this.#depth = gauge('workqueue_depth', 'Keys that wait for a worker.', 'name')
    this.#adds = counter(
      'workqueue_adds_total',
      'Keys that began to wait; what waits already counts once.',
      'name',
    )
    this.#waited = histogram(
      'workqueue_queue_duration_seconds',
      'How long a key waited for a worker.',
      'name',
    )
    this.#worked = histogram('workqueue_work_duration_seconds', 'How long a worker had a key.', 'name')
    this.#retries = counter('workqueue_retries_total', 'Keys that failed and will be tried again.', 'name')
    const turns = this.#turns
    const ages = (name: string, help: string, value: (ages: number[]) => number): Gauge<'name'> =>
      new Gauge({
        name: `postern_${name}`,
        help,
        labelNames: ['name'],
        registers,
        collect() {
          for (const [name, begun] of turns) {
            this.set({ name }, value([...begun.values()].map((since) => clock() - since)))
          }
        },
      })
    ages(
      'workqueue_unfinished_work_seconds',
      'Sum of how long the turns that are not over yet have taken: grows without end when workers are stuck.',
      (list) => list.reduce((sum, age) => sum + age, 0),
    )
    ages(
      'workqueue_longest_running_processor_seconds',
      'How long the oldest turn that is not over yet has taken.',
      (list) => Math.max(0, ...list),
    )
    this.#requests = counter(
      'rest_client_requests_total',
      'Requests to the API server, by HTTP status (error: no answer) and method. A watch is one request.',
      'code',
      'method',
    )
    this.#requestTime = histogram(
      'rest_client_request_duration_seconds',
      'Until the whole answer of the API server was there; of a watch, until it began.',
      'verb',
    )
    this.#leads = gauge(
      'leader_election_master_status',
      '1 while this process holds the Lease of that name and its controllers work, else 0.',
      'name',
    )
    this.#restarts = counter(
      'watch_restarts_total',
      'Watches that were opened again. A watch ends in order every few minutes; many in a row are a fault.',
      'kind',
    )
    this.#relists = counter(
      'watch_relists_total',
      'Times that all objects of a kind were listed: once at the start, then only after the server forgot where a watch was.',
      'kind',
    )
    gauge('build_info', 'Always 1: the versions are in the labels.', 'version', 'node').set(
      { version, node: process.versions.node },
      1,
    )
  }

  /** Watches one controller and its queue. @param name one of a fixed few */
  controller(name: string): WorkObserver {
    const clock = this.#clock
    const controller = { controller: name }
    const queue = { name }
    const waiting = new Map<string, number>()
    const turns = new Map<string, number>()
    this.#turns.set(name, turns)
    this.#depth.set(queue, 0)
    this.#active.set(controller, 0)
    for (const result of ['success', 'requeue_after', 'error']) {
      this.#reconciles.inc({ ...controller, result }, 0)
    }
    this.#errors.inc(controller, 0)
    this.#writes.inc(controller, 0)
    this.#retries.inc(queue, 0)
    return {
      opened: (concurrency) => this.#workers.set(controller, concurrency),
      queued: (key) => {
        waiting.set(key, clock())
        this.#adds.inc(queue)
        this.#depth.set(queue, waiting.size)
      },
      started: (key) => {
        const since = waiting.get(key)
        if (since !== undefined) this.#waited.observe(queue, clock() - since)
        waiting.delete(key)
        turns.set(key, clock())
        this.#depth.set(queue, waiting.size)
        this.#active.set(controller, turns.size)
      },
      finished: (key, result) => {
        const seconds = clock() - (turns.get(key) ?? clock())
        turns.delete(key)
        this.#active.set(controller, turns.size)
        this.#worked.observe(queue, seconds)
        this.#time.observe(controller, seconds)
        this.#reconciles.inc({ ...controller, result })
        if (result === 'error') this.#errors.inc(controller)
      },
      retried: () => this.#retries.inc(queue),
      dropped: (keys) => {
        for (const key of keys) waiting.delete(key)
        this.#depth.set(queue, waiting.size)
      },
      wrote: (writes) => this.#writes.inc(controller, writes),
    }
  }

  /** @param code HTTP status, or `error` when there was no answer */
  request(method: string, code: string, seconds: number): void {
    const verb = METHODS.includes(method) ? method : 'other'
    this.#requests.inc({ code: /^[1-5]\d\d$/.test(code) ? code : 'error', method: verb })
    this.#requestTime.observe({ verb }, seconds)
  }

  /** @param name of the Lease */
  leads(name: string, does: boolean): void {
    this.#leads.set({ name }, does ? 1 : 0)
  }

  /** @param kind plural, of those that the operator watches */
  watchRestarted(kind: string): void {
    this.#restarts.inc({ kind })
  }

  relisted(kind: string): void {
    this.#relists.inc({ kind })
  }
}
