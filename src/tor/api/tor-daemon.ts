import { z } from 'zod'
import { type ApiKind, serviceName, validator } from '../../cluster/api-kind.ts'
import type { Condition } from '../../core/conditions.ts'
import type { Resource } from '../../core/resource.ts'
import { refusedOption } from '../options.ts'
import { TOR_API_VERSION } from './group.ts'

const quantity = z
  .string()
  .max(32, 'must be a quantity such as 256Mi or 500m')
  .regex(/^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/, 'must be a quantity such as 256Mi or 500m')

const quantities = z.strictObject({ cpu: quantity.optional(), memory: quantity.optional() })

export const torDaemonSpec: z.ZodType = z.strictObject({
  resources: z
    .strictObject({ requests: quantities.optional(), limits: quantities.optional() })
    .optional()
    .describe("Resources of the daemon's container; the memory limit bounds tor's queues."),
  logLevel: z
    .enum(['err', 'warn', 'notice', 'info', 'debug'], {
      error: 'must be one of err, warn, notice, info, debug',
    })
    .optional()
    .describe("How much tor logs; default 'notice'."),
  options: z
    .record(
      z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, 'must be the name of a torrc option'),
      z.string().max(16384, 'must be at most 16384 characters'),
    )
    .superRefine((options, context) => {
      if (Object.keys(options).length > 64) {
        context.addIssue({ code: 'custom', message: 'must have at most 64 options' })
      }
      for (const name of Object.keys(options)) {
        const why = refusedOption(name)
        if (why !== undefined) {
          context.addIssue({ code: 'custom', path: [name], message: `may not be set here: ${why}` })
        }
      }
    })
    .optional()
    .describe('Further torrc options by name; a value with several lines gives the option once a line.'),
  bridges: z
    .never({
      error: 'not yet supported by this version: remove it, or the daemon would connect without bridges',
    })
    .optional(),
})

export interface TorDaemon extends Resource {
  spec?: {
    resources?: { requests?: Record<string, string>; limits?: Record<string, string> }
    logLevel?: string
    options?: Record<string, string>
  }
  status?: {
    observedGeneration?: number
    ready?: boolean
    version?: string
    bootstrapProgress?: number
    onionsPublished?: number
    conditions?: Condition[]
    [field: string]: unknown
  }
}

const kind = { apiVersion: TOR_API_VERSION, kind: 'TorDaemon' } as const

export const TOR_DAEMON: ApiKind<TorDaemon> = {
  ...kind,
  plural: 'tordaemons',
  shortNames: ['tord'],
  namespaced: true,
  spec: torDaemonSpec,
  columns: [
    { name: 'READY', type: 'boolean', jsonPath: '.status.ready' },
    { name: 'BOOTSTRAP', type: 'integer', jsonPath: '.status.bootstrapProgress' },
    { name: 'ONIONS', type: 'integer', jsonPath: '.status.onionsPublished' },
    { name: 'VERSION', type: 'string', jsonPath: '.status.version', priority: 1 },
    {
      name: 'REASON',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
      priority: 1,
    },
    { name: 'AGE', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  validate: validator(kind, torDaemonSpec.optional(), serviceName("the daemon's objects")),
}
