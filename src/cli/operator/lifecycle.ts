import { setTimeout as sleep } from 'node:timers/promises'
import type { Cluster } from '../../cluster/cluster.ts'
import { fence } from '../../controller/fence.ts'
import { type Leadership, runWithLeadership } from '../../controller/leader.ts'
import type { OperatorMetrics } from '../../controller/metrics.ts'
import { messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import { CONTROLLERS, type Prepared, type Preparing } from './controllers.ts'
import { crdProblems } from './crds.ts'
import type { HealthSource } from './health.ts'
import type { OperatorSettings } from './settings.ts'

export interface LifecycleOptions {
  cluster: Cluster
  /** How the cluster's caches stand. */
  states: HealthSource['states']
  settings: OperatorSettings
  /** Of the Lease. */
  leaseNamespace: string
  metrics: OperatorMetrics
  log: Logger
  /** For tests; by default the controllers that the settings name. */
  prepare?: (name: string, options: Preparing) => Promise<Prepared>
  /** Milliseconds between looks at kinds that are not as they should be. */
  retry?: number
}

const RETRY = 5_000

/**
 * An operator from its start to its end: kinds looked at and caches warm, then the Lease, then the controllers; and
 * back in that order.
 */
export class Lifecycle implements HealthSource {
  readonly states: HealthSource['states']
  readonly #options: LifecycleOptions
  #phase: ReturnType<HealthSource['phase']> = 'starting'
  #kinds: string[] = []
  #leadership: Leadership | undefined

  constructor(options: LifecycleOptions) {
    this.#options = options
    this.states = options.states
  }

  phase(): ReturnType<HealthSource['phase']> {
    return this.#phase
  }

  problems(): string[] {
    const lease = this.#leadership?.problem()
    return [...this.#kinds, ...(lease === undefined ? [] : [lease])]
  }

  overdue(): boolean {
    return this.#phase === 'working' && !this.#mayWrite()
  }

  /**
   * Resolves once it was asked to end, and has: what ran is finished, and the Lease is released.
   *
   * @throws PosternError `LeadershipLost`: whatever still runs must end with the process
   */
  async run(stop: AbortSignal): Promise<void> {
    const { settings, log } = this.#options
    const stopped = once(stop).then(() => {
      this.#phase = 'stopping'
      return undefined
    })
    const preparation = this.#prepare(stop)
    // It may fail because it was told to stop, when nobody waits for it any more.
    preparation.catch(() => {})
    const prepared = await Promise.race([stopped, preparation])
    if (prepared === undefined) return
    log.info(
      { controllers: settings.controllers, namespaces: settings.namespaces ?? 'all' },
      'caches are warm',
    )
    if (settings.leaderElect) await this.#elect(prepared, stop)
    else await this.#work(prepared, stop)
  }

  /** Resolves once the kinds are as they should be and all caches are warm. */
  async #prepare(stop: AbortSignal): Promise<Prepared[]> {
    const { cluster, settings, metrics, log, prepare = preparing } = this.#options
    const fenced = fence(cluster, () => this.#mayWrite())
    const work = settings.controllers.map((name) =>
      prepare(name, { cluster: fenced, settings, log, observer: metrics.controller(name) }),
    )
    const [prepared] = await Promise.all([Promise.all(work), this.#kindsKnown(stop)])
    return prepared
  }

  async #kindsKnown(stop: AbortSignal): Promise<void> {
    const { cluster, settings, log, retry = RETRY } = this.#options
    const kinds = settings.controllers.flatMap((name) => CONTROLLERS[name].kinds)
    for (let told = ''; !stop.aborted; ) {
      try {
        this.#kinds = await crdProblems(cluster, kinds)
      } catch (error) {
        this.#kinds = [`the kinds cannot be looked at: ${messageOf(error)}`]
      }
      if (this.#kinds.length === 0) return
      const error = this.#kinds.join('; ')
      if (error !== told) log.error({ error }, 'waits for the kinds')
      told = error
      await sleep(retry, undefined, { signal: stop }).catch(() => {})
    }
  }

  async #elect(prepared: Prepared[], stop: AbortSignal): Promise<void> {
    const { cluster, settings, leaseNamespace, metrics, log } = this.#options
    const { leaseName, identity } = settings
    metrics.leads(leaseName, false)
    this.#enter('standing by')
    const leadership = runWithLeadership({
      cluster,
      namespace: leaseNamespace,
      name: leaseName,
      identity,
      log,
      onStarted: (signal) => {
        metrics.leads(leaseName, true)
        return this.#work(prepared, signal)
      },
      onStopped: () => metrics.leads(leaseName, false),
    })
    this.#leadership = leadership
    const close = (): void => {
      leadership.close().catch(() => {})
    }
    stop.addEventListener('abort', close)
    if (stop.aborted) close()
    await leadership.done
  }

  async #work(prepared: Prepared[], signal: AbortSignal): Promise<void> {
    this.#enter('working')
    for (const one of prepared) one.start()
    await once(signal)
    await Promise.all(prepared.map((one) => one.close()))
  }

  /** Nothing leads back from the end. */
  #enter(phase: 'standing by' | 'working'): void {
    if (this.#phase !== 'stopping') this.#phase = phase
  }

  #mayWrite(): boolean {
    if (!this.#options.settings.leaderElect) return true
    return this.#leadership?.leads() === true
  }
}

function preparing(name: string, options: Preparing): Promise<Prepared> {
  return CONTROLLERS[name as keyof typeof CONTROLLERS].prepare(options)
}

function once(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
