import type { EventNote, StatusPatch } from '../cluster/cluster.ts'
import type { Ref, Resource } from '../core/resource.ts'

/** What a planner decided: data, so that a domain is tested as a table. */
export interface Plan {
  /** Objects that must exist, and are never overwritten once they do: keys, above all. */
  create: Resource[]
  /** Owned objects as they should be. */
  apply: Resource[]
  /** Owned objects that left the plan. */
  remove: Ref[]
  /** Status of each object that the plan speaks for. */
  status: StatusPatch[]
  /** Events, on transitions only. */
  notes: EventNote[]
  /** Milliseconds after which to look again. */
  again?: number
}

export function emptyPlan(): Plan {
  return { create: [], apply: [], remove: [], status: [], notes: [] }
}
