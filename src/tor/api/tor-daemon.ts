import { z } from 'zod'
import { type ApiKind, validator } from '../../cluster/api-kind.ts'
import { statusSchema } from '../../cluster/api-status.ts'
import { type CelRule, celList, celString, withRules } from '../../cluster/cel.ts'
import type { Condition } from '../../core/conditions.ts'
import type { Resource } from '../../core/resource.ts'
import { REFUSED_OPTIONS, REFUSED_PREFIXES, refusedOption } from '../options.ts'
import { type AccessSpec, httpConnect, PORTS_DIFFER, portsDiffer, socks } from './access.ts'
import { type BridgesSpec, bridges } from './bridges.ts'
import { daemonName } from './daemon-ref.ts'
import { TOR_API_VERSION } from './group.ts'
import { type PersistenceSpec, persistence } from './persistence.ts'
import { type PodTemplate, podTemplate } from './pod-template.ts'
import { type DaemonHealingStatus, daemonHealing } from './probe.ts'

const quantity = z
  .string()
  .max(32, 'must be a quantity such as 256Mi or 500m')
  .regex(/^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/, 'must be a quantity such as 256Mi or 500m')

const quantities = (what: string): z.ZodType =>
  z
    .strictObject({
      cpu: quantity.optional().describe('Cores, such as 500m.'),
      memory: quantity.optional().describe('Bytes, such as 256Mi.'),
    })
    .optional()
    .describe(what)

const OPTION_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/
const OPTION_NAME_MESSAGE = 'must be the name of a torrc option'

const options = withRules(
  z
    .record(
      z.string().regex(OPTION_NAME, OPTION_NAME_MESSAGE),
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
    }),
  nameRule(`!name.matches(${celString(OPTION_NAME.source)})`, OPTION_NAME_MESSAGE),
  ...refusedRules(),
).meta({ maxProperties: 64 })

/** A rule on the names of a map, which says the name that breaks it. */
function nameRule(broken: string, message: string): CelRule {
  return {
    rule: `!self.exists(name, ${broken})`,
    messageExpression: `self.filter(name, ${broken})[0] + ${celString(`: ${message}`)}`,
  }
}

/** One rule a reason, so that each is told. tor reads the names of options in any case. */
function refusedRules(): CelRule[] {
  const named = Map.groupBy(Object.entries(REFUSED_OPTIONS), ([, why]) => why)
  return [
    ...[...named].map(([why, options]) =>
      nameRule(
        `name.lowerAscii() in ${celList(options.map(([name]) => name))}`,
        `may not be set here: ${why}`,
      ),
    ),
    ...Object.entries(REFUSED_PREFIXES).map(([prefix, why]) => {
      const own = Object.keys(REFUSED_OPTIONS).filter((name) => name.startsWith(prefix))
      const more = own.length === 0 ? '' : ` && !(name.lowerAscii() in ${celList(own)})`
      return nameRule(
        `name.lowerAscii().startsWith(${celString(prefix)})${more}`,
        `may not be set here: ${why}`,
      )
    }),
  ]
}

const torDaemonFields: z.ZodObject = z.strictObject({
  resources: z
    .strictObject({
      requests: quantities('What the container is sure to have.'),
      limits: quantities('What the container may use at most.'),
    })
    .optional()
    .describe("Resources of the daemon's container; the memory limit bounds tor's queues."),
  logLevel: z
    .enum(['err', 'warn', 'notice', 'info', 'debug'], {
      error: 'must be one of err, warn, notice, info, debug',
    })
    .default('notice')
    .describe("How much tor logs; default 'notice'."),
  options: options
    .optional()
    .describe('Further torrc options by name; a value with several lines gives the option once a line.'),
  podTemplate,
  socks,
  httpConnect,
  persistence,
  bridges,
  metrics: z
    .strictObject({
      addresses: z
        .boolean()
        .default(false)
        .describe('Whether series of onions have their addresses as a label, for whoever may read them.'),
    })
    .optional()
    .describe("What the daemon's metrics tell."),
})

export const torDaemonSpec: z.ZodType = withRules(
  torDaemonFields.refine((spec) => portsDiffer(spec), PORTS_DIFFER.message),
  PORTS_DIFFER,
)

export interface TorDaemon extends Resource {
  spec?: {
    resources?: { requests?: Record<string, string>; limits?: Record<string, string> }
    logLevel?: string
    options?: Record<string, string>
    podTemplate?: PodTemplate
    socks?: AccessSpec
    httpConnect?: AccessSpec
    persistence?: PersistenceSpec
    bridges?: BridgesSpec
    metrics?: { addresses?: boolean }
  }
  status?: {
    observedGeneration?: number
    ready?: boolean
    version?: string
    bootstrapProgress?: number
    onionsPublished?: number
    socks?: string
    httpConnect?: string
    healing?: DaemonHealingStatus
    conditions?: Condition[]
    [field: string]: unknown
  }
}

const bridgeStates = z
  .array(
    z.strictObject({
      fingerprint: z.string().max(40).describe('Fingerprint of the bridge.'),
      seed: z.boolean().describe('Whether it is of the seed, and stays.'),
      state: z.enum(['healthy', 'dead', 'unknown']).describe('What tor says of it.'),
      since: z.string().max(64).meta({ format: 'date-time' }).optional().describe('Since when.'),
      reason: z.string().max(64).optional().describe('Why it is dead.'),
    }),
  )
  .max(100)
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['fingerprint'] })
  .describe('Bridges in use.')

const endpoint = (protocol: string): z.ZodType =>
  z.string().max(512).optional().describe(`Where workloads reach tor by ${protocol}.`)

const kind = { apiVersion: TOR_API_VERSION, kind: 'TorDaemon' } as const

export const TOR_DAEMON: ApiKind<TorDaemon> = {
  ...kind,
  plural: 'tordaemons',
  shortNames: ['tord'],
  namespaced: true,
  description: 'The one tor of a namespace; made when it is needed, declared only to set something.',
  spec: torDaemonSpec,
  specOptional: true,
  status: statusSchema({
    version: z.string().max(64).optional().describe('Version of tor.'),
    bootstrapProgress: z.int().min(0).max(100).optional().describe('How far tor is connected, in per cent.'),
    onionsPublished: z.int().min(0).max(1_000_000).optional().describe('Onions that can be found.'),
    socks: endpoint('SOCKS5'),
    httpConnect: endpoint('HTTP CONNECT'),
    bridges: bridgeStates.optional(),
    healing: daemonHealing,
  }),
  name: daemonName(),
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
  validate: validator(kind, torDaemonSpec.optional(), daemonName()),
}
