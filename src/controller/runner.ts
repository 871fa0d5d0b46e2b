import type { Cluster } from '../cluster/cluster.ts'
import { messageOf } from '../core/errors.ts'
import type { Logger } from '../core/logger.ts'
import { applyPlan, type Failure } from './applier.ts'
import type { OutsideCall, Plan } from './plan.ts'
import { type QueueOptions, WorkQueue } from './queue.ts'

/** A controller: level-triggered, one key in, the whole state enforced. */
export interface Controller<Observed> {
  /** Field manager, e.g. `postern/tor`. */
  name: string
  /** Reads caches and agents' reports, nothing else; undefined when there is nothing to do for the key. */
  gather(key: string): Observed | undefined
  /** Pure. @param now milliseconds since the epoch */
  plan(observed: Observed, now: number): Plan
  /** Told after each run what the cluster did not take, so that the next plan can say it. */
  outcome?(key: string, failures: readonly Failure[]): void
  /** Does a call of a plan; what it throws backs off and is tried again. */
  call?(call: OutsideCall): Promise<void>
  /** Subscribes to what may change a key's state; returns the way to stop. */
  watch(enqueue: (key: string) => void): () => void
}

export interface Runner {
  enqueue(key: string): void
  close(): Promise<void>
}

/** Runs a controller until it is closed. Start it once the caches that it reads are ready. */
export function runController<Observed>(
  cluster: Cluster,
  controller: Controller<Observed>,
  options: QueueOptions & { log: Logger; now?: () => number },
): Runner {
  const { log, now = Date.now } = options
  const queue = new WorkQueue(
    async (key) => {
      const observed = controller.gather(key)
      if (observed === undefined) return undefined
      const plan = controller.plan(observed, now())
      const { writes, failures } = await applyPlan(cluster, plan, controller.name)
      options.observer?.wrote?.(writes)
      if (writes > 0) log.debug({ controller: controller.name, key, writes }, 'reconciled')
      controller.outcome?.(key, failures)
      for (const call of plan.calls) await controller.call?.(call)
      // In a namespace that is being deleted nothing can be made any more, and nothing needs to be: trying is noise.
      const failure = failures.find(({ code }) => code !== 'Terminating')
      if (failure !== undefined) throw failure.error
      if (failures.length > 0)
        log.debug({ controller: controller.name, key }, 'its namespace is being deleted')
      return plan.again
    },
    (key, error) =>
      log.warn({ controller: controller.name, key, error: messageOf(error) }, 'reconcile failed'),
    options,
  )
  const stop = controller.watch((key) => queue.add(key))
  return {
    enqueue: (key) => queue.add(key),
    close() {
      stop()
      return queue.close()
    },
  }
}
