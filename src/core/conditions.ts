export type ConditionStatus = 'True' | 'False' | 'Unknown'

/** metav1.Condition. */
export interface Condition {
  type: string
  status: ConditionStatus
  /** CamelCase, one word, for programs. */
  reason: string
  /** For people: what is, and what to do next. */
  message: string
  /** RFC 3339; moves only when status changes. */
  lastTransitionTime: string
  observedGeneration?: number
}

export type ConditionInput = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

/**
 * The conditions that follow from what was and what is now: in the order given, with the transition time kept
 * wherever the status stayed.
 *
 * @param now milliseconds since the epoch
 */
export function nextConditions(
  before: readonly Condition[] | undefined,
  inputs: readonly ConditionInput[],
  generation: number | undefined,
  now: number,
): Condition[] {
  return inputs.map((input) => {
    const old = before?.find((condition) => condition.type === input.type)
    return {
      ...input,
      lastTransitionTime: old?.status === input.status ? old.lastTransitionTime : timestamp(now),
      ...(generation === undefined ? {} : { observedGeneration: generation }),
    }
  })
}

export function findCondition(list: readonly Condition[] | undefined, type: string): Condition | undefined {
  return list?.find((condition) => condition.type === type)
}

/** RFC 3339 in UTC and whole seconds, as Kubernetes writes times. */
export function timestamp(now: number): string {
  return new Date(now).toISOString().replace(/\.\d{3}Z$/, 'Z')
}
