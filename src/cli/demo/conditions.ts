import type { Cluster } from '../../cluster/cluster.ts'
import { POD } from '../../cluster/kinds.ts'
import type { Condition } from '../../core/conditions.ts'
import { type Kind, keyOf, type Resource } from '../../core/resource.ts'
import { TOR_KINDS } from '../../tor/api/kinds.ts'

/** Everything that is not as it should be, one line each: what was seen when a limit ended. */
export function openConditions(cluster: Cluster): string[] {
  const kinds: Kind[] = [...TOR_KINDS, POD]
  return kinds.flatMap((kind) =>
    cluster
      .cache<Resource>(kind)
      .list()
      .flatMap((object) =>
        conditionsOf(object)
          .filter((condition) => condition.status !== 'True')
          .map(
            ({ type, status, reason, message }) =>
              `${object.kind} ${keyOf(object)}: ${type} is ${status} (${reason ?? 'no reason'})${message ? `: ${message}` : ''}`,
          ),
      ),
  )
}

export function conditionsOf(object: Resource): Condition[] {
  return (object.status as { conditions?: Condition[] } | undefined)?.conditions ?? []
}
