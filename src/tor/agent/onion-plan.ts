/**
 * Decides what to do next about the onions of one tor. Pure: what should be, what is and the time go in, the
 * smallest change comes out. Many onions at once make tor's circuits collapse, so at most ten unpublished ones
 * are in flight; the oldest have precedence.
 */

export interface WantedOnion {
  name: string
  address: string
  /** The smallest goes first. */
  since: number
  /** What tor is to be told of it, see `onion-shape.ts`. */
  shape: string
  /** Its key is there and gives this address. */
  usable: boolean
}

/** An onion that tor has. Times are of one clock that never jumps, in milliseconds. */
export interface LiveOnion {
  address: string
  /** What tor was told of it. */
  shape: string
  addedAt: number
  /** At least one upload acknowledged since it was added. */
  published: boolean
  /** First upload asked after which none was acknowledged yet. */
  unacknowledgedSince?: number
  /** Newest acknowledged upload. */
  lastUpload?: number
}

/** What is remembered of an address beyond one ADD_ONION. */
export interface OnionHistory {
  /** In a row. */
  failures: number
  /** Not before this time is it tried again. */
  retryAt: number
  /** true: it could not be added; false: it was added, and its descriptor got lost. */
  refused: boolean
}

export interface PlanInput {
  wanted: readonly WantedOnion[]
  live: ReadonlyMap<string, LiveOnion>
  history: ReadonlyMap<string, OnionHistory>
  /** Since when tor can upload; undefined while it cannot. */
  bootstrappedAt: number | undefined
  now: number
}

export type OnionStep =
  | { do: 'remove'; address: string }
  | { do: 'add'; address: string }
  /** DEL_ONION and ADD_ONION in one go. */
  | { do: 'replace'; address: string; why: 'shape' | 'lost' }

export interface OnionPlanResult {
  steps: OnionStep[]
  /** When to look again even if nothing happens; undefined: never. */
  again: number | undefined
}

/** Milliseconds, but for the window. */
export interface OnionLimits {
  /** Unpublished onions at a time. */
  window: number
  /** A slot of the window is free again after this long, published or not. */
  slotMs: number
  /** Lost: uploads were asked and none acknowledged for so long. */
  unacknowledgedMs: number
  /** Lost: no upload was even asked for so long. */
  silentMs: number
  /** Lost: descriptors live three hours (HS_DESC_DEFAULT_LIFETIME). */
  descriptorMs: number
  /** First pause after a refusal, and after a loss; they double. */
  refusedMinMs: number
  lostMinMs: number
  backoffMaxMs: number
}

export const ONION_LIMITS: Readonly<OnionLimits> = {
  window: 10,
  slotMs: 60_000,
  unacknowledgedMs: 90_000,
  silentMs: 120_000,
  descriptorMs: 3 * 3_600_000,
  refusedMinMs: 5_000,
  lostMinMs: 60_000,
  backoffMaxMs: 3_600_000,
}

export function planOnions(input: PlanInput): OnionPlanResult {
  const { wanted, live, history, now } = input
  const steps: OnionStep[] = []
  let again: number | undefined
  const lookAt = (time: number): void => {
    if (again === undefined || time < again) again = time
  }

  const addresses = new Set(wanted.map((onion) => onion.address))
  for (const address of live.keys()) if (!addresses.has(address)) steps.push({ do: 'remove', address })

  let free = ONION_LIMITS.window
  for (const onion of live.values()) {
    if (!addresses.has(onion.address) || onion.published) continue
    const end = slotEnd(onion, input.bootstrappedAt)
    if (end !== undefined && end <= now) continue
    free -= 1
    if (end !== undefined) lookAt(end)
  }

  const urgent: { onion: WantedOnion; step: OnionStep }[] = []
  const lost: { onion: WantedOnion; step: OnionStep }[] = []
  for (const onion of wanted) {
    if (!onion.usable) continue
    const { address } = onion
    const current = live.get(address)
    const past = history.get(address)
    const retryAt = past?.retryAt ?? 0
    const changed = current !== undefined && current.shape !== onion.shape
    if (current === undefined || changed) {
      if (past?.refused && retryAt > now) lookAt(retryAt)
      else
        urgent.push({
          onion,
          step: changed ? { do: 'replace', address, why: 'shape' } : { do: 'add', address },
        })
    } else {
      const at = lostAt(current, input.bootstrappedAt)
      if (at === undefined) continue
      const due = Math.max(at, retryAt)
      if (due > now) lookAt(due)
      else lost.push({ onion, step: { do: 'replace', address, why: 'lost' } })
    }
  }

  for (const { step } of [...urgent.sort(byAge), ...lost.sort(byAge)]) {
    // One that is replaced while it holds a slot keeps that slot.
    if (holdsSlot(live.get(step.address), input)) steps.push(step)
    else if (free > 0) {
      free -= 1
      steps.push(step)
    }
  }
  return { steps, again }
}

/** What is remembered after one more failure: the pause doubles each time, up to an hour. */
export function afterFailure(
  history: OnionHistory | undefined,
  now: number,
  kind: 'refused' | 'lost',
): OnionHistory {
  const failures = (history?.failures ?? 0) + 1
  const first = kind === 'refused' ? ONION_LIMITS.refusedMinMs : ONION_LIMITS.lostMinMs
  const pause = Math.min(ONION_LIMITS.backoffMaxMs, first * 2 ** Math.min(failures - 1, 16))
  return { failures, retryAt: now + pause, refused: kind === 'refused' }
}

/** When an onion counts as lost if nothing is heard of it until then; undefined while tor cannot upload. */
export function lostAt(onion: LiveOnion, bootstrappedAt: number | undefined): number | undefined {
  if (bootstrappedAt === undefined) return undefined
  const after = (time: number, pause: number): number => Math.max(time, bootstrappedAt) + pause
  if (onion.unacknowledgedSince !== undefined) {
    return after(onion.unacknowledgedSince, ONION_LIMITS.unacknowledgedMs)
  }
  if (onion.published) return after(onion.lastUpload ?? onion.addedAt, ONION_LIMITS.descriptorMs)
  return after(onion.addedAt, ONION_LIMITS.silentMs)
}

/** Undefined: it holds its slot until tor can upload, for onions added meanwhile would all start at once then. */
function slotEnd(onion: LiveOnion, bootstrappedAt: number | undefined): number | undefined {
  return bootstrappedAt === undefined
    ? undefined
    : Math.max(onion.addedAt, bootstrappedAt) + ONION_LIMITS.slotMs
}

function holdsSlot(onion: LiveOnion | undefined, input: PlanInput): boolean {
  if (onion === undefined || onion.published) return false
  const end = slotEnd(onion, input.bootstrappedAt)
  return end === undefined || end > input.now
}

function byAge(a: { onion: WantedOnion }, b: { onion: WantedOnion }): number {
  return a.onion.since - b.onion.since || (a.onion.address < b.onion.address ? -1 : 1)
}
