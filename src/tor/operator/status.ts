import type { EventNote, StatusPatch } from '../../cluster/cluster.ts'
import { type Condition, type ConditionInput, findCondition, nextConditions } from '../../core/conditions.ts'
import { type Resource, refOf } from '../../core/resource.ts'
import { Reason } from '../api/reasons.ts'

/** What is not True yet, and is nothing to worry about. */
const ON_ITS_WAY: ReadonlySet<string> = new Set([Reason.Bootstrapping, Reason.UploadPending])

/**
 * Adds Ready: the first condition that is not True decides it, else it is True with the message given.
 *
 * @param advisory conditions that only keep it from being True while they are False
 */
export function withReady(
  conditions: ConditionInput[],
  message: string,
  advisory: ConditionInput[] = [],
): ConditionInput[] {
  const bad =
    [...conditions, ...advisory].find((condition) => condition.status === 'False') ??
    conditions.find((condition) => condition.status === 'Unknown')
  const ready: ConditionInput =
    bad === undefined
      ? { type: 'Ready', status: 'True', reason: 'Ready', message }
      : { ...bad, type: 'Ready' }
  return [ready, ...conditions, ...advisory]
}

/** The status of an object with its conditions, and the events that its transitions are worth. */
export function statusOf(
  object: Resource,
  inputs: ConditionInput[],
  fields: Record<string, unknown>,
  now: number,
): { patch: StatusPatch; notes: EventNote[] } {
  const before = (object.status as { conditions?: Condition[] } | undefined)?.conditions
  const { generation } = object.metadata
  const conditions = nextConditions(before, inputs, generation, now)
  const status = {
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ready: findCondition(conditions, 'Ready')?.status === 'True',
    ...fields,
    conditions,
  }
  return { patch: { ref: refOf(object), status }, notes: notesOf(object, before, conditions) }
}

/** What an event is about. */
export function aboutOf(object: Resource): EventNote['about'] {
  const { uid } = object.metadata
  return { ...refOf(object), ...(uid === undefined ? {} : { uid }) }
}

function notesOf(object: Resource, before: Condition[] | undefined, after: Condition[]): EventNote[] {
  const about = aboutOf(object)
  const notes: EventNote[] = []
  for (const condition of after) {
    const old = findCondition(before, condition.type)
    const same = old?.status === condition.status && old.reason === condition.reason
    if (condition.type === 'Ready' || condition.status === 'Unknown' || same) continue
    const type = condition.status === 'True' || ON_ITS_WAY.has(condition.reason) ? 'Normal' : 'Warning'
    notes.push({ about, type, reason: condition.reason, message: condition.message })
  }
  return notes
}
