import { z } from 'zod'
import { PATH_PATTERN, WATCH_EVERY } from '../limits.ts'

const EVERY = `must be a whole number from ${WATCH_EVERY.least} to ${WATCH_EVERY.most}`

/** `spec.probe` of an OnionService: how the tor of another namespace looks at it. */
export const probe: z.ZodType = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe(
        'Whether it is looked at; default true. false keeps its address from daemons of other namespaces.',
      ),
    intervalSeconds: z
      .int(EVERY)
      .min(WATCH_EVERY.least, EVERY)
      .max(WATCH_EVERY.most, EVERY)
      .default(WATCH_EVERY.usual)
      .describe(`Seconds between two looks while it is reachable; default ${WATCH_EVERY.usual}.`),
    http: z
      .strictObject({
        path: z
          .string()
          .max(256, 'must be a path such as /health')
          .regex(PATH_PATTERN, 'must be a path such as /health')
          .describe('Page that is asked for, such as /health. HTTP status 500 and above is a failure.'),
      })
      .optional()
      .describe(
        'The first port is HTTP, and must answer. Without it, it is enough that it takes a connection.',
      ),
  })
  .optional()
  .describe("How another namespace's tor looks whether visitors reach the onion.")

export interface ProbeSpec {
  enabled?: boolean
  intervalSeconds?: number
  http?: { path: string }
}

const time = (): z.ZodType => z.string().max(64).meta({ format: 'date-time' })
const count = (most = Number.MAX_SAFE_INTEGER): z.ZodInt => z.int().min(0).max(most)

/** `status.healing` of an OnionService. */
export const onionHealing: z.ZodType = z
  .strictObject({
    renewal: count().describe('Times that it was published anew for being unreachable.'),
    attempts: count(16).describe('Steps that were tried since it became unreachable.'),
    failures: count().describe('Looks in a row that had failed at the last step.'),
    lastAttempt: time().optional().describe('When the last step was taken.'),
    republished: z
      .array(time())
      .max(4)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .optional()
      .describe('When it was published anew lately: not more than four times a day.'),
  })
  .optional()
  .describe('What was tried because visitors could not reach the onion.')

/** `status.healing` of a TorDaemon. */
export const daemonHealing: z.ZodType = z
  .strictObject({
    restarts: count().describe('Times that tor was started anew because its onions were unreachable.'),
    freshCircuits: count().describe('Times that tor was made to use new circuits for that.'),
    lastRestart: time().optional().describe('When tor was started anew for that: not twice in six hours.'),
  })
  .optional()
  .describe('What was tried because visitors could not reach onions of the daemon.')

export interface OnionHealingStatus {
  renewal: number
  attempts: number
  failures: number
  lastAttempt?: string
  republished?: string[]
}

export interface DaemonHealingStatus {
  restarts: number
  freshCircuits: number
  lastRestart?: string
}
