import type { Named } from '../../cluster/cluster.ts'
import type { Secret } from '../../cluster/kinds.ts'
import { once } from '../../core/once.ts'
import { BRIDGES_DEFAULTS } from '../api/bridges.ts'
import { Reason } from '../api/reasons.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import { type BridgeLine, type ParsedLines, parseLines } from '../bridges/lines.ts'
import type { FetchResult } from '../bridges/pacing.ts'

/** File of the keys Secret by which the operator remembers; the agent does not read it. */
export const BRIDGES_STATE_FILE = 'bridges.json'

/** What is known of a daemon's bridges beside its report. */
export interface ObservedBridges {
  /** undefined while the Secret cannot be read: those known last stay. */
  seed: readonly BridgeLine[] | undefined
  /** Why it cannot. */
  problem?: { reason: string; message: string }
  /** What is wrong with lines of it; holds nothing of them. */
  refused: string[]
  /** Text of BRIDGES_STATE_FILE. */
  state: string | undefined
  outcome?: FetchResult
}

/**
 * @param named what is known of the seed's Secret; undefined: not looked at yet
 * @param keys the keys Secret as it is
 */
export function observeBridges(
  { spec }: TorDaemon,
  named: Named<Secret> | undefined,
  keys: Secret | undefined,
  outcome: FetchResult | undefined,
): ObservedBridges | undefined {
  const bridges = spec?.bridges
  if (bridges === undefined) return undefined
  const kept = keys?.data?.[BRIDGES_STATE_FILE]
  const known = {
    state: kept === undefined ? undefined : Buffer.from(kept, 'base64').toString('utf8'),
    ...(outcome === undefined ? {} : { outcome }),
  }
  if (bridges.seed === undefined) return { ...known, seed: [], refused: [] }
  const { name, key = BRIDGES_DEFAULTS.key } = bridges.seed
  const unread = (reason: string, message: string): ObservedBridges => ({
    ...known,
    seed: undefined,
    refused: [],
    problem: { reason, message },
  })
  if (named === undefined) return unread(Reason.Pending, `Secret ${name} was not read yet`)
  if (named.object === undefined) {
    return named.error === undefined
      ? unread(
          Reason.BridgeSeedNotFound,
          `Secret ${name} does not exist; create it with a bridge a line in ${key}`,
        )
      : unread(Reason.BridgeSeedNotFound, `Secret ${name} cannot be read: ${named.error}`)
  }
  const content = named.object.data?.[key]
  if (content === undefined) {
    return unread(
      Reason.BridgeSeedNotFound,
      `Secret ${name} has no ${key}; put the bridges there, or correct bridges.seed.key`,
    )
  }
  const parsed = parsedSeed(named.object, key, bridges.transport ?? BRIDGES_DEFAULTS.transport)
  const refused = parsed.refused.map(({ number, reason }) => `line ${number} of the seed ${reason}`)
  const more = parsed.refusedCount - parsed.refused.length
  if (more > 0) refused.push(`and ${more} more lines`)
  // Only faults: rather a slip in the Secret than a wish to have none.
  if (parsed.lines.length === 0 && parsed.refusedCount > 0) {
    return { ...known, seed: undefined, refused }
  }
  return { ...known, seed: parsed.lines, refused }
}

/** By key and transport: a seed may have thousands of lines, and is looked at with each report. */
const parsedSeeds = once((_secret: Secret) => new Map<string, ParsedLines>())

function parsedSeed(secret: Secret, key: string, transport: string): ParsedLines {
  const known = parsedSeeds(secret)
  const id = `${transport} ${key}`
  const parsed =
    known.get(id) ?? parseLines(Buffer.from(secret.data?.[key] ?? '', 'base64').toString('utf8'), [transport])
  known.set(id, parsed)
  return parsed
}
