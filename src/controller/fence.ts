import type { Cluster } from '../cluster/cluster.ts'
import { ClusterError } from '../cluster/errors.ts'

/**
 * The cluster, read as ever, written only while it is allowed. A process that was frozen and wakes up may have work
 * at hand that another one does by now: it must not write before it notices.
 */
export function fence(cluster: Cluster, mayWrite: () => boolean): Cluster {
  const check = (): void => {
    if (!mayWrite())
      throw new ClusterError('Unavailable', 'another process may lead by now: nothing is written')
  }
  return {
    cache: (kind, scope) => cluster.cache(kind, scope),
    named: (kind) => cluster.named(kind),
    get: (kind, ref) => cluster.get(kind, ref),
    async apply(object, manager) {
      check()
      return cluster.apply(object, manager)
    },
    async create(object, manager) {
      check()
      return cluster.create(object, manager)
    },
    async applyStatus(patch, manager) {
      check()
      return cluster.applyStatus(patch, manager)
    },
    async remove(ref, preconditions) {
      check()
      return cluster.remove(ref, preconditions)
    },
    note(event) {
      if (mayWrite()) cluster.note(event)
    },
  }
}
