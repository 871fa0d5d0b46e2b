import { z } from 'zod'
import type { ManifestKind } from '../cluster/embedded/manifests.ts'
import { CONFIG_MAP, ENDPOINT_SLICE, NAMESPACE, SECRET, SERVICE } from '../cluster/kinds.ts'
import type { Kind } from '../core/resource.ts'
import { TOR_KINDS } from '../tor/api/kinds.ts'

const port = z.int('must be a whole number from 1 to 65535').min(1).max(65535)
const texts = z.record(z.string(), z.string('must be a string: put it in quotes'))

/**
 * Kubernetes' own kinds are checked loosely: what we read of them has the right shape, and what we do not know passes,
 * so that a cluster's manifests apply here as they are.
 */
const shapes: [Kind, z.ZodType][] = [
  [
    SERVICE,
    z.looseObject({
      spec: z.looseObject({
        type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName']).optional(),
        selector: texts.optional(),
        ports: z
          .array(
            z.looseObject({
              name: z.string().max(63).optional(),
              port,
              targetPort: z.union([port, z.string()]).optional(),
              protocol: z.enum(['TCP', 'UDP', 'SCTP']).optional(),
            }),
          )
          .max(250)
          .optional(),
      }),
    }),
  ],
  [
    ENDPOINT_SLICE,
    z.looseObject({
      addressType: z.enum(['IPv4', 'IPv6', 'FQDN']),
      endpoints: z
        .array(
          z.looseObject({
            addresses: z.array(z.string()).min(1).max(100),
            conditions: z.looseObject({ ready: z.boolean().optional() }).optional(),
          }),
        )
        .max(1000),
      ports: z
        .array(z.looseObject({ name: z.string().max(63).optional(), port: port.optional() }))
        .max(100)
        .optional(),
    }),
  ],
  [
    SECRET,
    z.looseObject({
      data: z.record(z.string(), z.base64('must be base64')).optional(),
      type: z.string().optional(),
    }),
  ],
  [CONFIG_MAP, z.looseObject({ data: texts.optional() })],
  [NAMESPACE, z.looseObject({})],
]

/** Every kind that a folder of manifests may hold. */
export const MANIFEST_KINDS: ManifestKind[] = [
  ...TOR_KINDS.map((kind) => ({ kind, validate: kind.validate })),
  ...shapes.map(([kind, shape]) => ({
    kind,
    validate: (document: unknown) =>
      (shape.safeParse(document, { reportInput: true }).error?.issues ?? []).map((issue) => ({
        path: issue.path.map((step) => (typeof step === 'number' ? step : String(step))),
        message:
          issue.code === 'invalid_type' && issue.input === undefined
            ? 'is required'
            : issue.message.replace(/^Invalid (input|option): /, ''),
      })),
  })),
]
