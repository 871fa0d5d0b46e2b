import type { Resource } from '../../core/resource.ts'
import { PERSISTENCE_DEFAULTS } from '../api/persistence.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import { type DaemonId, stateName } from './names.ts'
import { owned } from './owned.ts'

/** The claim in which an agent keeps a copy of tor's guards. tor's own folder stays the pod's: two tors cannot share it. */

const KEEP_MOUNT = '/var/lib/postern-state'
/** As the image's user; what a volume's files belong to where nothing else is said. */
const GROUP = 65532

/** Undefined where nothing is kept. */
export function stateClaim(owner: TorDaemon, daemon: DaemonId): Resource | undefined {
  const asked = owner.spec?.persistence
  if (asked === undefined) return undefined
  const { size = PERSISTENCE_DEFAULTS.size, storageClassName } = asked
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: owned(owner, daemon, stateName(daemon)),
    spec: {
      accessModes: [accessMode(owner)],
      ...(storageClassName === undefined ? {} : { storageClassName }),
      resources: { requests: { storage: size } },
    },
  }
}

/**
 * Whether a new pod starts before its predecessor has ended. Not with a volume that one node or one pod has at a time:
 * the new pod would wait for it for ever, since the old one waits for the new.
 */
export function startsBeside(owner: TorDaemon): boolean {
  return owner.spec?.persistence === undefined || accessMode(owner) === 'ReadWriteMany'
}

export interface KeptVolume {
  volumes: object[]
  mounts: object[]
  args: string[]
  /** Of the pod's securityContext, where its user gives none. */
  group: { fsGroup?: number; fsGroupChangePolicy?: string }
}

/** What a pod needs of it. */
export function keptVolume(owner: TorDaemon, daemon: DaemonId): KeptVolume {
  if (owner.spec?.persistence === undefined) return { volumes: [], mounts: [], args: [], group: {} }
  return {
    volumes: [{ name: 'state', persistentVolumeClaim: { claimName: stateName(daemon) } }],
    mounts: [{ name: 'state', mountPath: KEEP_MOUNT }],
    args: ['--keep', KEEP_MOUNT],
    group: { fsGroup: GROUP, fsGroupChangePolicy: 'OnRootMismatch' },
  }
}

function accessMode({ spec }: TorDaemon): string {
  return spec?.persistence?.accessMode ?? PERSISTENCE_DEFAULTS.accessMode
}
