/** One rule of a Role or ClusterRole, and why it is needed. */
export interface Permission {
  reason: string
  apiGroups: string[]
  resources: string[]
  verbs: string[]
  /** Only these objects. A name cannot bound `create`, `list` without a name, or `watch` without one. */
  resourceNames?: string[]
}

/** Name of the Lease that the leading operator holds, in the operator's own namespace. */
export const OPERATOR_LEASE = 'postern-operator'

/** What the operator's process needs beside its controllers, in its own namespace only. */
export const PROCESS_PERMISSIONS: readonly Permission[] = [
  {
    reason: 'Leader election: the first operator makes the Lease; what is created has no name to go by yet.',
    apiGroups: ['coordination.k8s.io'],
    resources: ['leases'],
    verbs: ['create'],
  },
  {
    reason: 'Leader election: hold the Lease, see who holds it, release it.',
    apiGroups: ['coordination.k8s.io'],
    resources: ['leases'],
    verbs: ['get', 'patch'],
    resourceNames: [OPERATOR_LEASE],
  },
]
