import { z } from 'zod'
import { type ApiKind, objectName, portNumber, serviceName, validator } from '../../cluster/api-kind.ts'
import type { Condition } from '../../core/conditions.ts'
import type { Resource } from '../../core/resource.ts'
import { METRICS_PORT, REPORT_PORT } from '../contract.ts'
import { parseOnionAddress } from '../onion/address.ts'
import { TOR_API_VERSION } from './group.ts'

const RESERVED_PORTS = [METRICS_PORT, REPORT_PORT]

export const onionProxySpec: z.ZodType = z.strictObject({
  targets: z
    .array(
      z.strictObject({
        name: objectName().max(63, 'must be at most 63 characters').describe('Name of this target.'),
        onion: z
          .string()
          .max(256, 'must be an onion address of 56 characters and .onion')
          .superRefine((onion, context) => {
            const parsed = parseOnionAddress(onion)
            if (!parsed.ok) context.addIssue({ code: 'custom', message: parsed.message })
          })
          .describe('v3 onion address to reach.'),
        port: portNumber('Port of the onion address.'),
        listenPort: portNumber('Port of the Service that is named after this proxy.').refine(
          (port) => !RESERVED_PORTS.includes(port),
          `must not be one of ${RESERVED_PORTS.join(' and ')}, which the daemon uses itself`,
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
    })
    .describe('Onions that the workloads of this namespace reach as plain TCP.'),
  daemonRef: z
    .strictObject({ name: serviceName("the daemon's objects").describe('Name of the TorDaemon.') })
    .optional()
    .describe("TorDaemon of the namespace that carries the connections; default 'tor', made when missing."),
})

export interface OnionProxy extends Resource {
  spec: {
    targets: { name: string; onion: string; port: number; listenPort: number }[]
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

const kind = { apiVersion: TOR_API_VERSION, kind: 'OnionProxy' } as const

export const ONION_PROXY: ApiKind<OnionProxy> = {
  ...kind,
  plural: 'onionproxies',
  shortNames: ['oproxy'],
  namespaced: true,
  spec: onionProxySpec,
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
  validate: validator(kind, onionProxySpec, serviceName('the Service of this proxy')),
}
