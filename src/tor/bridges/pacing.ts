import type { FetchState } from './curation-state.ts'
import type { BridgeLine } from './lines.ts'

/** What came of a fetch. `asked` is that of the wish which it answers. */
export type FetchResult = { asked: number } & ({ bridges: readonly BridgeLine[] } | { failure: FetchFailure })

export interface FetchFailure {
  /** CamelCase. */
  reason: string
  /** What is wrong and what to do next; holds no secret. */
  message: string
  /** false: nothing answered, so nobody was bothered either. */
  reached: boolean
  /** Milliseconds for which the source asked to be left alone. */
  wait?: number
}

/**
 * Milliseconds from one fetch to the next: `first`, doubled with each fetch in a row that brought no new bridge, up to
 * `most`; up to `unreached` where nothing answered.
 */
export interface FetchPace {
  first: number
  unreached: number
  most: number
}

/** A distributor gives the same few bridges to one address for hours to days, and a captcha to who asks often. */
export const FETCH_PACE: FetchPace = { first: 10 * 60_000, unreached: 3_600_000, most: 12 * 3_600_000 }

/** What is known of the fetches from this source, with what came of the last one, where that is new. */
export function settle(
  state: FetchState,
  source: string | undefined,
  result: FetchResult | undefined,
  pace: FetchPace,
  now: number,
): { fetch: FetchState; bridges: readonly BridgeLine[] } {
  // Another one is owed no patience.
  if (source === undefined) return { fetch: { fruitless: 0 }, bridges: [] }
  if (source !== state.source) return { fetch: { source, fruitless: 0 }, bridges: [] }
  if (state.open === undefined || result === undefined || result.asked !== state.last) {
    // After the clock was set back one waits from now on, not until then.
    const late = state.last !== undefined && state.last > now
    return { fetch: late ? { ...state, last: now } : state, bridges: [] }
  }
  const { open, failure: _, notBefore, ...known } = state
  if ('bridges' in result) return { fetch: known, bridges: result.bridges }
  const { reason, message, reached, wait } = result.failure
  const most = Math.floor(Math.log2(pace.unreached / pace.first))
  return {
    fetch: {
      ...known,
      fruitless: reached ? known.fruitless : Math.min(known.fruitless, Math.max(0, most)),
      ...(wait === undefined ? {} : { notBefore: now + wait }),
      failure: { reason, message },
    },
    bridges: [],
  }
}

/** When the next fetch may be: milliseconds since the epoch. */
export function dueOf({ last, fruitless, notBefore }: FetchState, { first, most }: FetchPace): number {
  if (last === undefined) return 0
  const wait = Math.min(first * 2 ** fruitless, most)
  return Math.max(last + wait, Math.min(notBefore ?? 0, last + most))
}

/** It counts as one that brought nothing until it is known to have, so that a crash cannot make it ask faster. */
export function asked({ notBefore: _, ...state }: FetchState, { most }: FetchPace, now: number): FetchState {
  const old = state.last === undefined || now - state.last > 2 * most
  return { ...state, last: now, open: true, fruitless: (old ? 0 : state.fruitless) + 1 }
}
