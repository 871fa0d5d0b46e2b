import { z } from 'zod'

/** What every kind of ours says of its objects. Limits are those of `metav1.Condition`. */

const conditions = z
  .array(
    z.strictObject({
      type: z.string().min(1).max(316).describe('What the condition is about.'),
      status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds.'),
      reason: z.string().min(1).max(1024).describe('Why, in one word; docs/troubleshooting.md has them all.'),
      message: z.string().max(32768).describe('What is, and what to do next.'),
      lastTransitionTime: z.iso.datetime().describe('When its status changed last.'),
      observedGeneration: z
        .int()
        .min(0)
        .optional()
        .describe('Generation of the object that the condition speaks of.'),
    }),
  )
  .max(16)
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })
  .describe('What holds for this object, by type.')

/** The status of a kind: generation, `ready`, conditions, and the kind's own fields. */
export function statusSchema(fields: z.ZodRawShape): z.ZodType {
  const known = z.strictObject({
    observedGeneration: z.int().min(0).optional().describe('Newest generation that was looked at.'),
    ready: z.boolean().optional().describe('Whether the condition Ready is True.'),
    ...fields,
    conditions: conditions.optional(),
  })
  // A newer operator on these CRDs may say more: a field that is not known must not keep the rest from being written.
  return known.meta({ 'x-kubernetes-preserve-unknown-fields': true })
}
