import type { Cluster, FieldManager } from '../cluster/cluster.ts'
import { codeOf } from '../core/errors.ts'
import type { Plan } from './plan.ts'

/** Writes that a plan took: 0 in an unchanged world. */
export interface Outcome {
  writes: number
}

/**
 * Makes a plan true: creates, applies, removes, then statuses and events. The one applier of all controllers.
 * What cannot be created because it is there already ends the run with that error, so that the next run plans
 * with what is there.
 */
export async function applyPlan(cluster: Cluster, plan: Plan, manager: FieldManager): Promise<Outcome> {
  let writes = 0
  for (const object of plan.create) {
    await cluster.create(object, manager)
    writes++
  }
  /** One object that the cluster does not take must not keep the others, or the word of it, from their users. */
  const failures: unknown[] = []
  for (const object of plan.apply) {
    try {
      if ((await cluster.apply(object, manager)) !== 'unchanged') writes++
    } catch (error) {
      failures.push(error)
    }
  }
  for (const ref of plan.remove) {
    await cluster.remove(ref)
    writes++
  }
  for (const patch of plan.status) {
    try {
      if ((await cluster.applyStatus(patch, manager)) !== 'unchanged') writes++
    } catch (error) {
      // Deleted meanwhile: its status is nobody's business any more, and the others must not wait for it.
      if (codeOf(error) !== 'NotFound') throw error
    }
  }
  for (const note of plan.notes) cluster.note(note)
  if (failures.length > 0) throw failures[0]
  return { writes }
}
