import type { EventNote, StatusPatch } from '../cluster/cluster.ts'
import { type Ref, type Resource, refOf } from '../core/resource.ts'

/** What a planner decided: data, so that a domain is tested as a table. */
export interface Plan {
  /** Objects that must exist, and are never overwritten once they do: keys, above all. */
  create: Resource[]
  /** Owned objects as they should be. */
  apply: Resource[]
  /** Owned objects that left the plan: these very ones, not what may have their names by then. */
  remove: (Ref & { uid: string | undefined })[]
  /** Status of each object that the plan speaks for. */
  status: StatusPatch[]
  /** Named work outside the cluster; the controller does it. */
  calls: OutsideCall[]
  /** Events, on transitions only. */
  notes: EventNote[]
  /** Milliseconds after which to look again. */
  again?: number
}

/** Work outside the cluster, as data: what to do, and with what. */
export interface OutsideCall {
  /** As `tor.retire`. */
  name: string
  with: Record<string, string>
}

export function emptyPlan(): Plan {
  return { create: [], apply: [], remove: [], status: [], calls: [], notes: [] }
}

/** Takes an owned object out: this very one. */
export function removeObject(plan: Plan, object: Resource): void {
  plan.remove.push({ ...refOf(object), uid: object.metadata.uid })
}

/** Looks at the key again after a while; the earliest of several times counts. */
export function lookAgain(plan: Plan, milliseconds: number): void {
  plan.again = Math.min(plan.again ?? Number.POSITIVE_INFINITY, milliseconds)
}
