import { z } from 'zod'
import { dataKey, objectName } from '../../cluster/api-kind.ts'
import { withRules } from '../../cluster/cel.ts'

/** Pluggable transports by which a bridge may be reached; the image decides which it has. */
export const TRANSPORTS = ['obfs4', 'meek_lite', 'snowflake', 'webtunnel'] as const

const MOST = 50
const WHERE = 'must have a seed, a source, or both: without a bridge the daemon never connects'
const LEAST = 'minHealthy must be at most maxBridges'
const HTTPS = 'must begin with https:// and have no user name in it'

const count = (description: string): z.ZodInt =>
  z
    .int('must be a whole number')
    .min(1, `must be from 1 to ${MOST}`)
    .max(MOST, `must be from 1 to ${MOST}`)
    .describe(description)

const url = withRules(
  z
    .string()
    .max(2048, 'must be at most 2048 characters')
    .regex(/^https:\/\/[^\s/@?#]+([/?#]\S*)?$/, HTTPS),
  { rule: "self.matches('^https://[^\\\\s/@?#]+([/?#]\\\\S*)?$')", message: HTTPS },
)

/** `spec.bridges` of a TorDaemon. */
export const bridges: z.ZodType = withRules(
  z
    .strictObject({
      transport: z
        .enum(TRANSPORTS, { error: `must be one of ${TRANSPORTS.join(', ')}` })
        .default('obfs4')
        .describe("How bridges are reached; default 'obfs4'."),
      seed: z
        .strictObject({
          name: objectName().describe('Name of the Secret.'),
          key: dataKey()
            .default('bridges')
            .describe("Key of the Secret, with a bridge a line; default 'bridges'."),
        })
        .meta({ 'x-kubernetes-map-type': 'atomic' })
        .optional()
        .describe('Secret with your own bridges, which are never taken out.'),
      source: z
        .strictObject({
          https: z
            .strictObject({ url: url.describe('Address of a page with bridges.') })
            .describe('A distributor that answers over HTTPS.'),
        })
        .optional()
        .describe('Where further bridges are fetched, sparingly, when too few are healthy.'),
      minHealthy: count('Fewer bridges than this that are not dead: more are fetched; default 2.').default(2),
      maxBridges: count('Most bridges in use, those of the seed included; default 6.').default(6),
      evictGraceSeconds: z
        .int('must be a whole number of seconds')
        .min(0, 'must be from 0 to 604800 seconds')
        .max(604_800, 'must be from 0 to 604800 seconds')
        .default(3600)
        .describe('How long a fetched bridge is dead before it is taken out; default 3600.'),
    })
    .refine(({ seed, source }) => seed !== undefined || source !== undefined, WHERE)
    .refine(({ minHealthy, maxBridges }) => minHealthy <= maxBridges, LEAST),
  { rule: 'has(self.seed) || has(self.source)', message: WHERE },
  { rule: 'self.minHealthy <= self.maxBridges', message: LEAST },
)
  .optional()
  .describe('Bridges, where the network filters Tor: with them the daemon never connects directly.')

export interface BridgesSpec {
  transport?: (typeof TRANSPORTS)[number]
  /** Secret of the user, whose bridges are never taken out. */
  seed?: { name: string; key?: string }
  source?: { https: { url: string } }
  minHealthy?: number
  maxBridges?: number
  evictGraceSeconds?: number
}

/** What holds where a spec does not say: one machine keeps specs as they were written. */
export const BRIDGES_DEFAULTS: Required<Omit<BridgesSpec, 'seed' | 'source'>> & { key: string } = {
  transport: 'obfs4',
  key: 'bridges',
  minHealthy: 2,
  maxBridges: 6,
  evictGraceSeconds: 3600,
}
