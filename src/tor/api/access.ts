import { z } from 'zod'
import { portNumber } from '../../cluster/api-kind.ts'
import { type CelRule, withRules } from '../../cluster/cel.ts'
import { METRICS_PORT, REPORT_PORT } from '../contract.ts'

/** `spec.socks` and `spec.httpConnect` of a TorDaemon: tor for workloads that speak to a proxy themselves. */

const RESERVED_PORTS = [METRICS_PORT, REPORT_PORT]
const RESERVED = `must not be one of ${RESERVED_PORTS.join(' and ')}, which the daemon uses itself`
const EXIT = ['Onions', 'All'] as const
const SAME = 'socks and httpConnect must have ports of their own'

export interface AccessSpec {
  port?: number
  exit?: (typeof EXIT)[number]
}

/** What holds where a spec does not say: one machine keeps specs as they were written. */
export const ACCESS_DEFAULTS = { socks: 9050, httpConnect: 8118, exit: 'Onions' } as const

function access(port: number, description: string): z.ZodType {
  return z
    .strictObject({
      port: withRules(
        portNumber(`Port of the Service and of the daemon's pod; default ${port}.`)
          .refine((value) => !RESERVED_PORTS.includes(value), RESERVED)
          .default(port),
        { rule: `!(self in [${RESERVED_PORTS.join(', ')}])`, message: RESERVED },
      ),
      exit: z
        .enum(EXIT, { error: `must be one of ${EXIT.join(', ')}` })
        .default(ACCESS_DEFAULTS.exit)
        .describe(
          "Where to: 'Onions' refuses all but onion addresses, 'All' also goes out to the open web through exits; default 'Onions'.",
        ),
    })
    .optional()
    .describe(description)
}

export const socks: z.ZodType = access(
  ACCESS_DEFAULTS.socks,
  'A SOCKS5 proxy for the workloads of this namespace: the Service `<daemon>-socks`. Clients of different addresses never share a circuit.',
)

export const httpConnect: z.ZodType = access(
  ACCESS_DEFAULTS.httpConnect,
  'The same for workloads that speak HTTP CONNECT: the Service `<daemon>-connect`.',
)

interface Ports {
  socks?: AccessSpec
  httpConnect?: AccessSpec
}

/** The two stand on one address. */
export function portsDiffer({ socks, httpConnect }: Ports): boolean {
  if (socks === undefined || httpConnect === undefined) return true
  return (socks.port ?? ACCESS_DEFAULTS.socks) !== (httpConnect.port ?? ACCESS_DEFAULTS.httpConnect)
}

export const PORTS_DIFFER: CelRule & { message: string } = {
  rule: '!has(self.socks) || !has(self.httpConnect) || self.socks.port != self.httpConnect.port',
  message: SAME,
}
