import { describeRef, type OwnerReference, type Resource, refOf } from '../core/resource.ts'
import { ClusterError } from './errors.ts'

/**
 * What an owner's object may be applied over: nothing, or what that owner controls already. Objects that users made, or
 * that another owner has, are never adopted.
 *
 * @throws ClusterError `Taken`; `Conflict` while a former owner of the same name has it, which the cluster is about
 * to remove
 */
export function checkOwnership(wanted: Resource, existing: Pick<Resource, 'metadata'> | undefined): void {
  const owner = controllerOf(wanted)
  if (owner === undefined || existing === undefined) return
  const holder = controllerOf(existing)
  if (holder?.uid === owner.uid) return
  const what = describeRef(refOf(wanted))
  if (holder !== undefined && holder.kind === owner.kind && holder.name === owner.name) {
    throw new ClusterError(
      'Conflict',
      `${what} still belongs to a former ${owner.kind} ${owner.name}; it is made anew once it is removed`,
    )
  }
  const whose = holder === undefined ? '' : ` (${holder.kind} ${holder.name} has it)`
  throw new ClusterError(
    'Taken',
    `${what} is there already and is not of ${owner.kind} ${owner.name}${whose}; rename or delete one of the two`,
  )
}

export function controllerOf(object: Pick<Resource, 'metadata'>): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((one) => one.controller === true)
}
