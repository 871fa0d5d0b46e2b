import { z } from 'zod'
import {
  type ApiKind,
  dataKey,
  objectName,
  portNumber,
  serviceName,
  validator,
} from '../../cluster/api-kind.ts'
import { statusSchema } from '../../cluster/api-status.ts'
import { uniqueRule, withRules } from '../../cluster/cel.ts'
import type { Condition } from '../../core/conditions.ts'
import type { Resource } from '../../core/resource.ts'
import { METRICS_PORT, REPORT_PORT } from '../contract.ts'
import { daemonRef } from './daemon-ref.ts'
import { TOR_API_VERSION } from './group.ts'
import { onionAddressField } from './onion-address.ts'

const RESERVED_PORTS = [METRICS_PORT, REPORT_PORT]

const RESERVED = `must not be one of ${RESERVED_PORTS.join(' and ')}, which the daemon uses itself`

const targets = withRules(
  z
    .array(
      z.strictObject({
        name: objectName(63).describe('Name of this target.'),
        onion: onionAddressField.describe('v3 onion address to reach.'),
        port: portNumber('Port of the onion address.'),
        clientAuthSecret: z
          .strictObject({
            name: objectName().describe('Name of the Secret.'),
            key: dataKey()
              .optional()
              .describe("Key of the Secret; default 'private-key', as generated ones have it."),
          })
          .meta({ 'x-kubernetes-map-type': 'atomic' })
          .optional()
          .describe('Secret with our private key, where the onion lets in only clients that it knows.'),
        listenPort: withRules(
          portNumber('Port of the Service that is named after this proxy.').refine(
            (port) => !RESERVED_PORTS.includes(port),
            RESERVED,
          ),
          { rule: `!(self in [${RESERVED_PORTS.join(', ')}])`, message: RESERVED },
        ),
      }),
    )
    .min(1, 'must have at least one target')
    .max(64, 'must have at most 64 targets')
    .superRefine((targets, context) => {
      targets.forEach((target, index) => {
        const same = targets.findIndex((other) => other.listenPort === target.listenPort)
        if (same < index) {
          context.addIssue({
            code: 'custom',
            path: [index, 'listenPort'],
            message: `port ${target.listenPort} is there already (targets[${same}]); each listenPort may stand once`,
          })
        }
        const named = targets.findIndex((other) => other.name === target.name)
        if (named < index) {
          context.addIssue({
            code: 'custom',
            path: [index, 'name'],
            message: `'${target.name}' is there already (targets[${named}]); each name may stand once`,
          })
        }
      })
    }),
  uniqueRule('listenPort', 'port %d is there already; each listenPort may stand once'),
  uniqueRule('name', "'%s' is there already; each name may stand once"),
).meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })

export const onionProxySpec: z.ZodType = z.strictObject({
  targets: targets.describe('Onions that the workloads of this namespace reach as plain TCP.'),
  daemonRef: daemonRef(
    "TorDaemon of the namespace that carries the connections; default 'tor', made when missing.",
  ),
})

export interface ProxyTargetSpec {
  name: string
  onion: string
  port: number
  listenPort: number
  clientAuthSecret?: { name: string; key?: string }
}

export interface OnionProxy extends Resource {
  spec: {
    targets: ProxyTargetSpec[]
    daemonRef?: { name: string }
  }
  status?: {
    observedGeneration?: number
    ready?: boolean
    /** One line a target: name, address for workloads, reachable, reason. */
    targets?: { name: string; endpoint: string; reachable: string; reason?: string }[]
    conditions?: Condition[]
    [field: string]: unknown
  }
}

const targetStates = z
  .array(
    z.strictObject({
      name: z.string().max(63).describe('Name of the target.'),
      endpoint: z.string().max(512).describe('Where workloads reach it; empty while they cannot.'),
      reachable: z.enum(['True', 'False', 'Unknown']).describe('What the newest probe through Tor found.'),
      reason: z.string().max(1024).optional().describe('Why it is not reachable.'),
    }),
  )
  .max(64)
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
  .describe('The targets, in the order of the spec.')

const proxyName = serviceName('the Service of this proxy')

const kind = { apiVersion: TOR_API_VERSION, kind: 'OnionProxy' } as const

export const ONION_PROXY: ApiKind<OnionProxy> = {
  ...kind,
  plural: 'onionproxies',
  shortNames: ['oproxy'],
  namespaced: true,
  description: 'Foreign onions as plain TCP ports of a Service of this namespace.',
  spec: onionProxySpec,
  status: statusSchema({ targets: targetStates.optional() }),
  name: proxyName,
  columns: [
    { name: 'READY', type: 'boolean', jsonPath: '.status.ready' },
    { name: 'ENDPOINT', type: 'string', jsonPath: '.status.targets[0].endpoint' },
    {
      name: 'REASON',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
      priority: 1,
    },
    { name: 'AGE', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  validate: validator(kind, onionProxySpec, proxyName),
}
