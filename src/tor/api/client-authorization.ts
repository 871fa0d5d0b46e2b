import { z } from 'zod'
import { objectName } from '../../cluster/api-kind.ts'
import { uniqueRule, withRules } from '../../cluster/cel.ts'
import { CLIENTS_LIMIT } from '../limits.ts'
import { readPublicKey } from '../onion/client-key.ts'

const KEY_MESSAGE = 'must be an x25519 public key: 52 characters of base32, or descriptor:x25519:<base32>'
const ONE_MESSAGE = 'must have either publicKey, or generate: true'

const client = withRules(
  z
    .strictObject({
      name: objectName(63).describe('Name of the client, for you alone: tor does not know it.'),
      publicKey: withRules(
        z
          .string()
          .max(96, KEY_MESSAGE)
          .superRefine((text, context) => {
            const read = readPublicKey(text)
            if (!read.ok) context.addIssue({ code: 'custom', message: KEY_MESSAGE })
          }),
        {
          rule: "self.matches('^\\\\s*(?i:(descriptor:x25519:)?[a-z2-7]{52})\\\\s*$')",
          message: KEY_MESSAGE,
        },
      )
        .optional()
        .describe('Public key that the client gave you; it keeps the private one.'),
      generate: z
        .boolean()
        .optional()
        .describe(
          'true: both keys are made, and stand in the Secret `<onion>-client-<name>` for you to hand over.',
        ),
    })
    .refine(({ publicKey, generate }) => (publicKey === undefined) === (generate === true), ONE_MESSAGE),
  { rule: 'has(self.publicKey) != (has(self.generate) && self.generate)', message: ONE_MESSAGE },
)

const clients = withRules(
  z
    .array(client)
    .min(1, 'must have at least one client: without clientAuthorization everybody may connect')
    .max(CLIENTS_LIMIT, `must have at most ${CLIENTS_LIMIT} clients: tor never publishes an onion with more`)
    .superRefine((all, context) => {
      all.forEach(({ name }, index) => {
        const first = all.findIndex((other) => other.name === name)
        if (first < index) {
          context.addIssue({
            code: 'custom',
            path: [index, 'name'],
            message: `'${name}' is there already (clients[${first}]); each name may stand once`,
          })
        }
      })
    }),
  uniqueRule('name', "'%s' is there already; each name may stand once"),
).meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })

/** `spec.clientAuthorization` of an OnionService: who alone may connect. */
export const clientAuthorization: z.ZodType = z
  .strictObject({
    clients: clients.describe('Clients that may connect; who is taken out is cut off at once.'),
  })
  .optional()
  .describe('Makes the onion private: only these clients find it and may connect.')

export interface ClientAuthorization {
  clients: { name: string; publicKey?: string; generate?: boolean }[]
}
