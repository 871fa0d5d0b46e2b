import { ownerReference, type Resource } from '../../core/resource.ts'
import { TOR_API_VERSION } from '../api/group.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import { type DaemonId, daemonLabels, PROVISIONED_ANNOTATION } from './names.ts'

/** The daemon that is made where objects need one and nobody declared it. */
export function provisionedDaemon(daemon: DaemonId): Resource {
  return {
    apiVersion: TOR_API_VERSION,
    kind: 'TorDaemon',
    metadata: {
      namespace: daemon.namespace,
      name: daemon.name,
      labels: daemonLabels(daemon),
      annotations: { [PROVISIONED_ANNOTATION]: 'true' },
    },
  }
}

/** Metadata of an object that goes with its daemon. */
export function owned(owner: TorDaemon, daemon: DaemonId, name: string): Resource['metadata'] {
  return {
    namespace: daemon.namespace,
    name,
    labels: daemonLabels(daemon),
    ownerReferences: [ownerReference(owner)],
  }
}
