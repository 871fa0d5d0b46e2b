import type { OnionPlan } from '../contract.ts'
import type { HsDescEvent } from '../control/events.ts'
import type { LiveOnion } from './onion-plan.ts'
import { shapeOf } from './onion-shape.ts'

/** An onion that tor has, with what was heard of its descriptors since it was added. */
export interface TrackedOnion extends LiveOnion {
  uploadsAsked: number
  uploadsAcknowledged: number
  /** By the wall's clock, for the report. */
  lastUploadTime?: number
  /** Directories that were asked since it was added, the newest last; each may be asked for two descriptors. */
  open: Set<string>
  /** tor's reason for the newest upload that failed. */
  failure?: string
  /** Who may connect; undefined: everybody. */
  clients: readonly string[] | undefined
}

const OPEN_LIMIT = 1024

export function tracked(plan: OnionPlan, now: number): TrackedOnion {
  return {
    address: plan.address,
    shape: shapeOf(plan),
    clients: plan.clients,
    addedAt: now,
    published: false,
    uploadsAsked: 0,
    uploadsAcknowledged: 0,
    open: new Set(),
  }
}

/**
 * Takes one event into account. An acknowledgement counts only if its directory was asked since the onion was
 * added: one of the time before says nothing of the descriptor of now.
 *
 * @param now of the clock of {@link LiveOnion}
 * @param time milliseconds since the epoch
 * @returns whether something changed
 */
export function countUpload(onion: TrackedOnion, event: HsDescEvent, now: number, time: number): boolean {
  const directory = event.hsdir ?? ''
  if (event.action === 'UPLOAD') {
    onion.uploadsAsked += 1
    onion.unacknowledgedSince ??= now
    // Directories change every day: the one that was asked longest ago makes room, or later answers would not count.
    onion.open.delete(directory)
    onion.open.add(directory)
    if (onion.open.size > OPEN_LIMIT) onion.open.delete(onion.open.values().next().value!)
    return true
  }
  if (!onion.open.has(directory)) return false
  if (event.action === 'UPLOADED') {
    // The same directory may hold both descriptors; it was asked twice then, and the second answer counts too.
    onion.uploadsAcknowledged = Math.min(onion.uploadsAsked, onion.uploadsAcknowledged + 1)
    onion.published = true
    onion.lastUpload = now
    onion.lastUploadTime = time
    delete onion.unacknowledgedSince
    delete onion.failure
    return true
  }
  if (event.action === 'FAILED' && (event.reason === 'UPLOAD_REJECTED' || event.reason === 'UNEXPECTED')) {
    onion.failure = event.reason
    return true
  }
  return false
}
