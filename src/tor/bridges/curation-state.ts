import { type BridgeLine, inOrder, LINES_LIMITS, parseLines } from './lines.ts'

export const CURATION_VERSION = 1

/** What curation knows from one time to the next, through restarts. Holds lines: it is kept in a Secret. */
export interface CurationState {
  version: typeof CURATION_VERSION
  /** The newest seed that could be read, for the time in which it cannot. */
  seed: BridgeLine[]
  /** From the source, and not taken out since; also those that the seed has too. */
  fetched: BridgeLine[]
  /** Taken out for being dead, oldest first: the source hands them out again for days. */
  evicted: Evicted[]
  fetch: FetchState
}

export interface Evicted {
  fingerprint: string
  /** Milliseconds since the epoch. */
  at: number
}

export interface FetchState {
  /** Address that all of this is about. */
  source?: string
  /** Milliseconds since the epoch of the last wish to fetch, which names that fetch too. */
  last?: number
  /** What came of the last wish is not known. */
  open?: true
  /** Fetches in a row that brought no new bridge; one that is open counts as such. */
  fruitless: number
  /** The source asked to be left alone until then; milliseconds since the epoch. */
  notBefore?: number
  /** Of the last fetch, where it failed. */
  failure?: { reason: string; message: string }
}

/** How long and how many are remembered. */
export const EVICTED_LIMITS: Readonly<Record<'milliseconds' | 'count', number>> = {
  milliseconds: 7 * 24 * 3_600_000,
  count: 200,
}

const FINGERPRINT = /^[0-9A-F]{40}$/
const REASON = /^[A-Z][A-Za-z0-9]{0,63}$/
const TEXT_LIMIT = 1024 * 1024
const URL_LIMIT = 2048
const MESSAGE_LIMIT = 1024

export function emptyCurationState(): CurationState {
  return { version: CURATION_VERSION, seed: [], fetched: [], evicted: [], fetch: { fruitless: 0 } }
}

/** One text for one state: compare it with the one that is kept, and write only what differs. */
export function writeCurationState({ seed, fetched, evicted, fetch }: CurationState): string {
  const { source, last, open, fruitless, notBefore, failure } = fetch
  return JSON.stringify({
    version: CURATION_VERSION,
    seed: inOrder(seed).map(({ line }) => line),
    fetched: inOrder(fetched).map(({ line }) => line),
    evicted: evicted.map(({ fingerprint, at }) => ({ fingerprint, at })),
    fetch: {
      source,
      last,
      open,
      fruitless,
      notBefore,
      failure: failure === undefined ? undefined : { reason: failure.reason, message: failure.message },
    },
  })
}

/**
 * Reads a state as far as it is one. Never throws: what cannot be read is as good as empty, since bridges can be fetched
 * again and health is observed anew. Bridges of other transports are left out.
 */
export function readCurationState(text: string | undefined, transports: readonly string[]): CurationState {
  const state = emptyCurationState()
  const document = objectOf(parse(text))
  if (document.version !== CURATION_VERSION) return state
  state.seed = lines(document.seed, transports)
  state.fetched = lines(document.fetched, transports)
  state.evicted = evicted(document.evicted)
  state.fetch = fetchState(objectOf(document.fetch))
  return state
}

function parse(text: string | undefined): unknown {
  if (text === undefined || text.length > TEXT_LIMIT) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function lines(value: unknown, transports: readonly string[]): BridgeLine[] {
  const texts = listOf(value).filter((one) => typeof one === 'string' && one.length <= LINES_LIMITS.length)
  return parseLines(texts.join('\n'), transports).lines
}

function evicted(value: unknown): Evicted[] {
  const found: Evicted[] = []
  for (const one of listOf(value)) {
    const { fingerprint, at } = objectOf(one)
    if (typeof fingerprint !== 'string' || !FINGERPRINT.test(fingerprint) || !isTime(at)) continue
    found.push({ fingerprint, at })
  }
  return inTime(found)
}

/** Each once, at its last time; oldest first, and of too many the newest. */
export function inTime(list: readonly Evicted[]): Evicted[] {
  const sorted = list.toSorted((a, b) => a.at - b.at || (a.fingerprint < b.fingerprint ? -1 : 1))
  const last = new Map(sorted.map((one) => [one.fingerprint, one]))
  return sorted.filter((one) => last.get(one.fingerprint) === one).slice(-EVICTED_LIMITS.count)
}

function fetchState(from: Record<string, unknown>): FetchState {
  const { source, last, open, fruitless, notBefore } = from
  const { reason, message } = objectOf(from.failure)
  const known = typeof reason === 'string' && REASON.test(reason) && typeof message === 'string'
  return {
    ...(typeof source === 'string' && source.length <= URL_LIMIT ? { source } : {}),
    ...(isTime(last) ? { last } : {}),
    ...(open === true && isTime(last) ? { open } : {}),
    fruitless: isTime(fruitless) ? Math.min(fruitless, 1_000) : 0,
    ...(isTime(notBefore) ? { notBefore } : {}),
    ...(known ? { failure: { reason, message: message.slice(0, MESSAGE_LIMIT) } } : {}),
  }
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
