import type { BridgeHealth, BridgeState } from '../contract.ts'
import { CURATION_VERSION, type CurationState, EVICTED_LIMITS, inTime } from './curation-state.ts'
import { type BridgeLine, canonicalText, inOrder } from './lines.ts'
import { asked, dueOf, FETCH_PACE, type FetchPace, type FetchResult, settle } from './pacing.ts'

export interface CurationInput {
  /** The user's own bridges; undefined while they cannot be read: those known last stay. */
  seed: readonly BridgeLine[] | undefined
  state: CurationState
  /** As the agent reports it; empty while it does not. */
  health: readonly BridgeState[]
  minHealthy: number
  maxBridges: number
  evictGraceSeconds: number
  /** Address that further bridges are fetched from. */
  source?: string
  /** What came of a fetch. May be given again and again: it is taken in once. */
  outcome?: FetchResult
  /** Default {@link FETCH_PACE}. */
  pace?: FetchPace
}

/**
 * none: enough bridges are not dead; fetch: now; wait: a fetch is due later; full: more are needed, and every place is
 * taken by one that may not be taken out; noSource: more are needed, and there is nowhere to fetch them.
 */
export type CurationNeed = 'none' | 'fetch' | 'wait' | 'full' | 'noSource'

export interface CuratedBridge {
  fingerprint: string
  seed: boolean
  state: BridgeHealth
  /** Milliseconds since the epoch; undefined where the agent does not know it yet. */
  since?: number
  reason?: string
}

export interface Curation {
  /** Of BRIDGES_FILE. */
  text: string
  lines: BridgeLine[]
  /** One a fingerprint, by fingerprint. Holds nothing confidential. */
  bridges: CuratedBridge[]
  /** To be kept; with a wish to fetch before the fetch, or a restart would fetch again. */
  state: CurationState
  need: CurationNeed
  /** Set: fetch, once, and give what came of it as `outcome`. */
  fetch?: { source: string; asked: number }
  /** Milliseconds until time alone may change something. */
  again?: number
  /** Fingerprints, sorted. */
  added: string[]
  /** For being dead. */
  evicted: string[]
  /** For want of places: the seed grew, or `maxBridges` shrank. */
  displaced: string[]
}

/** Keeps the set of bridges of one daemon. Pure: the same input at the same time gives the same result. */
export function curate(input: CurationInput, now: number): Curation {
  const { minHealthy, maxBridges, source } = input
  const pace = input.pace ?? FETCH_PACE
  const seed = inOrder(input.seed ?? input.state.seed)
  const ours = new Set(seed.map(({ fingerprint }) => fingerprint))
  const health = new Map(input.health.map((one) => [one.fingerprint, one]))
  const isDead = ({ fingerprint }: BridgeLine): boolean => health.get(fingerprint)?.state === 'dead'
  const places = Math.max(0, maxBridges - ours.size)

  // One line a fingerprint: health would not tell two of them apart.
  const before = [...new Map(input.state.fetched.map((one) => [one.fingerprint, one])).values()]
  const shared = before.filter(({ fingerprint }) => ours.has(fingerprint))
  const spares = before.filter(({ fingerprint }) => !ours.has(fingerprint))

  const { kept: alive, gone: evicted, next } = evict(input, [...seed, ...spares], spares, health, now)
  const kept = byWorth(alive, health).slice(0, places)
  const displaced = alive.filter((one) => !kept.includes(one))

  const remembered = inTime([
    ...input.state.evicted.filter(({ at }) => at <= now && now - at < EVICTED_LIMITS.milliseconds),
    ...evicted.map(({ fingerprint }) => ({ fingerprint, at: now })),
  ])
  const settled = settle(input.state.fetch, source, input.outcome, pace, now)
  const offered = settled.bridges.filter(({ fingerprint }) => ours.has(fingerprint))
  const fresh = news(
    settled.bridges,
    new Set([...ours, ...kept.map(fingerprintOf), ...remembered.map(fingerprintOf)]),
  )
  const added = fresh.slice(0, places - kept.length)
  const fetched = [...kept, ...added]

  let fetch = added.length > 0 ? { ...settled.fetch, fruitless: 0 } : settled.fetch
  const set = inOrder([...seed, ...fetched])
  const notDead = new Set(set.filter((one) => !isDead(one)).map(fingerprintOf)).size
  const need = needOf(notDead < minHealthy, source, fetched.length < places, dueOf(fetch, pace) <= now)
  if (need === 'fetch') fetch = asked(fetch, pace, now)
  const times = next === undefined ? [] : [next]
  // Also after a wish of which nobody tells what came.
  if (need === 'fetch' || need === 'wait') times.push(dueOf(fetch, pace))
  return {
    text: canonicalText(set),
    lines: set,
    bridges: describe(set, ours, health),
    state: {
      version: CURATION_VERSION,
      seed,
      fetched: inOrder([...fetched, ...union(shared, offered)]),
      evicted: remembered,
      fetch,
    },
    need,
    ...(need === 'fetch' && source !== undefined ? { fetch: { source, asked: now } } : {}),
    ...(times.length > 0 ? { again: Math.max(1, Math.min(...times) - now) } : {}),
    added: added.map(fingerprintOf).sort(),
    evicted: evicted.map(fingerprintOf).sort(),
    displaced: displaced.map(fingerprintOf).sort(),
  }
}

function needOf(wanting: boolean, source: string | undefined, room: boolean, due: boolean): CurationNeed {
  if (!wanting) return 'none'
  if (source === undefined) return 'noSource'
  if (!room) return 'full'
  return due ? 'fetch' : 'wait'
}

function fingerprintOf({ fingerprint }: { fingerprint: string }): string {
  return fingerprint
}

/**
 * Takes out who has been dead for too long, while another one is healthy. When nothing is, it is our own network, and
 * every bridge may be as good as before.
 */
function evict(
  { evictGraceSeconds }: CurationInput,
  set: readonly BridgeLine[],
  spares: readonly BridgeLine[],
  health: ReadonlyMap<string, BridgeState>,
  now: number,
): { kept: BridgeLine[]; gone: BridgeLine[]; next?: number } {
  if (!set.some(({ fingerprint }) => health.get(fingerprint)?.state === 'healthy')) {
    return { kept: [...spares], gone: [] }
  }
  const kept: BridgeLine[] = []
  const gone: BridgeLine[] = []
  let next: number | undefined
  for (const one of spares) {
    const known = health.get(one.fingerprint)
    const last = known?.state === 'dead' ? known.since + evictGraceSeconds * 1000 : Number.POSITIVE_INFINITY
    if (now > last) {
      gone.push(one)
      continue
    }
    kept.push(one)
    if (last < Number.POSITIVE_INFINITY) next = Math.min(next ?? last + 1, last + 1)
  }
  return { kept, gone, ...(next === undefined ? {} : { next }) }
}

const WORTH: Readonly<Record<BridgeHealth, number>> = { healthy: 0, unknown: 1, dead: 2 }

/** Best first: healthy ones, the longest so first; of dead ones those that died last. */
function byWorth(lines: readonly BridgeLine[], health: ReadonlyMap<string, BridgeState>): BridgeLine[] {
  const rank = ({ fingerprint }: BridgeLine): [number, number] => {
    const { state = 'unknown', since = 0 } = health.get(fingerprint) ?? {}
    return [WORTH[state], state === 'dead' ? -since : since]
  }
  return inOrder(lines).sort((a, b) => {
    const [x, y] = [rank(a), rank(b)]
    return x[0] - y[0] || x[1] - y[1]
  })
}

/** Those that are not known, one a fingerprint. */
function news(bridges: readonly BridgeLine[], known: Set<string>): BridgeLine[] {
  return inOrder(bridges).filter(({ fingerprint }) => {
    const isNew = !known.has(fingerprint)
    known.add(fingerprint)
    return isNew
  })
}

/** What the seed has too, and came from the source: stays when it leaves the seed. */
function union(shared: readonly BridgeLine[], offered: readonly BridgeLine[]): BridgeLine[] {
  return [...shared, ...news(offered, new Set(shared.map(fingerprintOf)))]
}

function describe(
  set: readonly BridgeLine[],
  ours: ReadonlySet<string>,
  health: ReadonlyMap<string, BridgeState>,
): CuratedBridge[] {
  return [...new Set(set.map(fingerprintOf))].sort().map((fingerprint) => {
    const { state = 'unknown', since, reason } = health.get(fingerprint) ?? {}
    return {
      fingerprint,
      seed: ours.has(fingerprint),
      state,
      ...(since === undefined ? {} : { since }),
      ...(reason === undefined ? {} : { reason }),
    }
  })
}
