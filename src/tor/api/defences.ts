import { z } from 'zod'
import { withRules } from '../../cluster/cel.ts'

const rate = z
  .int('must be a whole number')
  .min(1, 'must be at least 1')
  .max(1_000_000, 'must be at most 1000000')

const OFF = 'must not have a rate while enabled is false: remove it, or enable the defence'
const BURST = 'queueBurst must be at least queueRate'

/** `spec.pow` of an OnionService: visitors prove work while too many want in. */
export const pow: z.ZodType = withRules(
  z
    .strictObject({
      enabled: z.boolean().default(true).describe('Whether the defence is on; default true.'),
      queueRate: rate
        .optional()
        .describe("Visitors a second that are let in from the queue; tor's default is 250."),
      queueBurst: rate
        .optional()
        .describe("Visitors that may be let in at once after a quiet time; tor's default is 2500."),
    })
    .refine(
      ({ enabled, queueRate, queueBurst }) =>
        enabled || (queueRate === undefined && queueBurst === undefined),
      OFF,
    )
    .refine(({ queueRate = 250, queueBurst = 2500 }) => queueBurst >= queueRate, BURST),
  { rule: 'self.enabled || (!has(self.queueRate) && !has(self.queueBurst))', message: OFF },
  {
    rule: '(has(self.queueBurst) ? self.queueBurst : 2500) >= (has(self.queueRate) ? self.queueRate : 250)',
    message: BURST,
  },
)
  .optional()
  .describe('Proof of work: while too many want in, visitors that compute more come first.')

/** `spec.streams` of an OnionService: how much one visitor may ask for at a time. */
export const streams: z.ZodType = z
  .strictObject({
    max: z
      .int('must be a whole number')
      .min(1, 'must be from 1 to 65535')
      .max(65_535, 'must be from 1 to 65535')
      .describe("Connections that one visitor's circuit may have open at a time."),
    closeCircuit: z
      .boolean()
      .default(false)
      .describe(
        'Whether one connection more ends the whole circuit instead of being refused; default false.',
      ),
  })
  .optional()
  .describe('How many connections one visitor may have open.')

export interface Pow {
  enabled?: boolean
  queueRate?: number
  queueBurst?: number
}

export interface Streams {
  max: number
  closeCircuit?: boolean
}
