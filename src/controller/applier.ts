import type { Cluster, FieldManager } from '../cluster/cluster.ts'
import { codeOf, messageOf } from '../core/errors.ts'
import { type Ref, refOf } from '../core/resource.ts'
import type { Plan } from './plan.ts'

export interface Outcome {
  /** Writes that a plan took: 0 in an unchanged world. */
  writes: number
  /** Objects that the cluster did not take. */
  failures: Failure[]
}

export interface Failure {
  ref: Ref
  /** Of the ClusterError; undefined for errors that have none. */
  code: string | undefined
  message: string
  error: unknown
}

/** Requests of one plan at the same time, where their order does not matter: a daemon may have thousands of onions. */
const AT_ONCE = 8

/**
 * Makes a plan true: creates, applies, removes, then statuses and events. The one applier of all controllers. An
 * object that the cluster does not take keeps neither the others nor the word of it from their users.
 *
 * @throws what a removal or a status failed with
 */
export async function applyPlan(cluster: Cluster, plan: Plan, manager: FieldManager): Promise<Outcome> {
  let writes = 0
  const failures: Failure[] = []
  const attempt = async (ref: Ref, work: () => Promise<boolean>): Promise<void> => {
    try {
      if (await work()) writes++
    } catch (error) {
      failures.push({ ref, code: codeOf(error), message: messageOf(error), error })
    }
  }
  await eachOf(plan.create, (object) =>
    attempt(refOf(object), () => cluster.create(object, manager).then(() => true)),
  )
  for (const object of plan.apply) {
    await attempt(refOf(object), async () => (await cluster.apply(object, manager)) !== 'unchanged')
  }
  for (const { uid, ...ref } of plan.remove) {
    try {
      await cluster.remove(ref, uid === undefined ? undefined : { uid })
      writes++
    } catch (error) {
      // Another one has its name by now, and that one is not ours to remove.
      if (codeOf(error) !== 'Conflict') throw error
    }
  }
  await eachOf(plan.status, async (patch) => {
    try {
      if ((await cluster.applyStatus(patch, manager)) !== 'unchanged') writes++
    } catch (error) {
      // Deleted meanwhile: its status is nobody's business any more, and the others must not wait for it.
      if (codeOf(error) !== 'NotFound') throw error
    }
  })
  for (const note of plan.notes) cluster.note(note)
  return { writes, failures }
}

/**
 * Works on some at a time, and begins nothing new once one has failed.
 *
 * @throws the first failure, when nothing is under way any more
 */
async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values()
  const failures: unknown[] = []
  const worker = async (): Promise<void> => {
    for (const item of waiting) {
      try {
        await work(item)
      } catch (error) {
        failures.push(error)
      }
      if (failures.length > 0) return
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, worker))
  if (failures.length > 0) throw failures[0]
}
