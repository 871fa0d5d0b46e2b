import { z } from 'zod'
import { objectName } from '../../cluster/api-kind.ts'

const ACCESS_MODES = ['ReadWriteOnce', 'ReadWriteMany', 'ReadWriteOncePod'] as const

export interface PersistenceSpec {
  size?: string
  storageClassName?: string
  accessMode?: (typeof ACCESS_MODES)[number]
}

/** What holds where a spec does not say: one machine keeps specs as they were written. */
export const PERSISTENCE_DEFAULTS = { size: '100Mi', accessMode: 'ReadWriteOnce' } as const

/** `spec.persistence` of a TorDaemon. */
export const persistence: z.ZodType = z
  .strictObject({
    size: z
      .string()
      .max(32, 'must be a size such as 100Mi')
      .regex(/^[1-9][0-9]*(Ki|M|Mi|G|Gi|T|Ti)?$/, 'must be a size such as 100Mi')
      .default(PERSISTENCE_DEFAULTS.size)
      .describe("Size that is claimed; a few hundred kilobytes of it are used; default '100Mi'."),
    storageClassName: objectName()
      .optional()
      .describe("StorageClass of the claim; default: the cluster's own default."),
    accessMode: z
      .enum(ACCESS_MODES, { error: `must be one of ${ACCESS_MODES.join(', ')}` })
      .default(PERSISTENCE_DEFAULTS.accessMode)
      .describe(
        "How the volume is mounted. With 'ReadWriteMany' a new pod starts before the old one ends, as without a claim; with the others the old one has to end first, and onions are away meanwhile; default 'ReadWriteOnce'.",
      ),
  })
  .optional()
  .describe(
    "Keeps tor's guards over pods and nodes: in the PersistentVolumeClaim `<daemon>-state`, which goes with the daemon.",
  )
