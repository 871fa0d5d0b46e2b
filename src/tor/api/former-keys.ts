import { z } from 'zod'
import { objectName } from '../../cluster/api-kind.ts'

const DATE = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/
const DATE_MESSAGE = 'must be a date and time such as 2026-12-31T00:00:00Z'

/** `spec.formerKeys` of an OnionService: addresses that it had, and that lead to it for a while yet. */
export const formerKeys: z.ZodType = z
  .array(
    z.strictObject({
      name: objectName().describe('Name of the Secret with the former key.'),
      until: z
        .string()
        .max(64, DATE_MESSAGE)
        .refine((text) => DATE.test(text) && !Number.isNaN(Date.parse(text)), DATE_MESSAGE)
        .meta({ format: 'date-time' })
        .describe('When the former address ends.'),
    }),
  )
  .max(4, 'must have at most 4 keys')
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
  .optional()
  .describe('Keys of former addresses, which are served beside the new one until their time is over.')

export interface FormerKeySpec {
  name: string
  /** RFC 3339. */
  until: string
}
