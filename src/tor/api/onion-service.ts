import { z } from 'zod'
import { type ApiKind, objectName, portNumber, serviceName, validator } from '../../cluster/api-kind.ts'
import { statusSchema } from '../../cluster/api-status.ts'
import { refusedField, uniqueRule, withRules } from '../../cluster/cel.ts'
import type { Condition } from '../../core/conditions.ts'
import type { Resource } from '../../core/resource.ts'
import { type ClientAuthorization, clientAuthorization } from './client-authorization.ts'
import { daemonRef } from './daemon-ref.ts'
import { type Pow, pow, type Streams, streams } from './defences.ts'
import { type FormerKeySpec, formerKeys } from './former-keys.ts'
import { TOR_API_VERSION } from './group.ts'
import { type OnionLocationSpec, onionLocation } from './onion-location.ts'
import { type OnionHealingStatus, onionHealing, type ProbeSpec, probe } from './probe.ts'

const portName = z
  .string()
  .max(15, 'must be at most 15 characters, as every port name')
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, "must be a port number or a port's name")

const backend = z
  .strictObject({
    service: serviceName('a Service').describe('Name of a Service in the same namespace.'),
    port: z
      .union([portNumber('Port number of the Service.'), portName], {
        error: (issue) =>
          typeof issue.input === 'number'
            ? 'must be from 1 to 65535'
            : "must be a port number or a port's name",
      })
      .describe('Port of the Service: its number or its name.'),
    namespace: refusedField(
      'a backend in another namespace is not possible; publish the onion in the namespace of the Service',
      'string',
    ),
  })
  .describe('Where connections to this port go.')

const ports = withRules(
  z
    .array(
      z.strictObject({
        virtualPort: portNumber('Port of the onion address that visitors use.'),
        backend,
      }),
    )
    .min(1, 'must have at least one port')
    .max(32, 'must have at most 32 ports')
    .superRefine((ports, context) => {
      ports.forEach((port, index) => {
        const first = ports.findIndex((other) => other.virtualPort === port.virtualPort)
        if (first < index) {
          context.addIssue({
            code: 'custom',
            path: [index, 'virtualPort'],
            message: `port ${port.virtualPort} is there already (ports[${first}]); each virtualPort may stand once`,
          })
        }
      })
    }),
  uniqueRule('virtualPort', 'port %d is there already; each virtualPort may stand once'),
).meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['virtualPort'] })

export const onionServiceSpec: z.ZodType = z.strictObject({
  ports: ports.describe('Ports of the onion address and the Services behind them.'),
  privateKeySecret: z
    .strictObject({ name: objectName().describe('Name of the Secret.') })
    .meta({ 'x-kubernetes-map-type': 'atomic' })
    .optional()
    .describe('Secret that holds the key of a fixed or vanity address, as tor or mkp224o writes it.'),
  daemonRef: daemonRef(
    "TorDaemon of the namespace that publishes this onion; default 'tor', made when missing.",
  ),
  clientAuthorization,
  pow,
  streams,
  formerKeys,
  onionLocation,
  probe,
  proxyProtocol: z
    .boolean()
    .optional()
    .describe(
      "true: each connection to the backend begins with a PROXY protocol header (version 1), whose source address fc00:dead:beef:4dad::/64 stands for the visitor's circuit. The backend must expect it.",
    ),
  keyRetention: z
    .enum(['Retain', 'Delete'], { error: 'must be Retain or Delete' })
    .default('Retain')
    .describe('What becomes of a generated key when this object is deleted; default Retain.'),
})

export interface OnionService extends Resource {
  spec: {
    ports: { virtualPort: number; backend: { service: string; port: number | string } }[]
    privateKeySecret?: { name: string }
    daemonRef?: { name: string }
    keyRetention?: 'Retain' | 'Delete'
    clientAuthorization?: ClientAuthorization
    formerKeys?: FormerKeySpec[]
    onionLocation?: OnionLocationSpec
    probe?: ProbeSpec
    proxyProtocol?: boolean
    pow?: Pow
    streams?: Streams
  }
  status?: OnionServiceStatus
}

export interface OnionServiceStatus {
  observedGeneration?: number
  /** With `.onion`. */
  hostname?: string
  /** Addresses of former keys, while they are served. */
  former?: FormerAddress[]
  /** What was tried because visitors could not reach it. */
  healing?: OnionHealingStatus
  ready?: boolean
  conditions?: Condition[]
  [field: string]: unknown
}

export interface FormerAddress {
  /** Of its Secret. */
  name: string
  hostname?: string
  published: boolean
  /** Why it is not served, while it should be. */
  reason?: string
}

const former = z
  .array(
    z.strictObject({
      name: z.string().max(253).describe('Name of the Secret with its key.'),
      hostname: z.string().max(62).optional().describe('The former address, with .onion.'),
      published: z.boolean().describe('Whether it can be found.'),
      reason: z.string().max(1024).optional().describe('Why it is not served.'),
    }),
  )
  .max(4)
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
  .optional()
  .describe('Former addresses whose time is not over.')

/** The Secret with its key is called `<name>-onion-key`. */
const onionName = objectName(253 - '-onion-key'.length)

const kind = { apiVersion: TOR_API_VERSION, kind: 'OnionService' } as const

export const ONION_SERVICE: ApiKind<OnionService> = {
  ...kind,
  plural: 'onionservices',
  shortNames: ['onion'],
  namespaced: true,
  description: 'A Service of this namespace, published under a v3 onion address.',
  spec: onionServiceSpec,
  status: statusSchema({
    hostname: z.string().max(62).optional().describe('The onion address, with .onion.'),
    former,
    healing: onionHealing,
  }),
  name: onionName,
  columns: [
    { name: 'HOSTNAME', type: 'string', jsonPath: '.status.hostname' },
    { name: 'READY', type: 'boolean', jsonPath: '.status.ready' },
    {
      name: 'REASON',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
      priority: 1,
    },
    { name: 'AGE', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  validate: validator(kind, onionServiceSpec, onionName),
}
