import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { describeRef, type Ref, type Resource } from '../core/resource.ts'
import type { EventNote } from './cluster.ts'
import { EVENT } from './kinds.ts'

/** What both clusters' recorders share: an event's identity, its object, and how many an object may have. */

const PER_MINUTE = 25
const OBJECTS = 1000
const MINUTE = 60_000
/** The API's limit on an event's note. */
const NOTE_BYTES = 1024

/** The event that a note belongs to: the same reason and message about the same object is the same event. */
export function eventRef({ about, type, reason, message }: EventNote): Ref {
  const digest = createHash('sha256')
    .update(JSON.stringify([about.apiVersion, about.kind, about.uid ?? '', type, reason, message]))
    .digest('hex')
  return {
    apiVersion: EVENT.apiVersion,
    kind: EVENT.kind,
    namespace: about.namespace ?? 'default',
    name: `${about.name.slice(0, 230)}.${digest.slice(0, 16)}`.replace('..', '.'),
  }
}

/**
 * The event of a note (events.k8s.io/v1), seen `times` more often than `before` says. What the API lets nobody change
 * is taken over from `before`.
 */
export function eventOf(note: EventNote, before: Resource | undefined, times: number, now: number): Resource {
  const { about, type, reason, message } = note
  const ref = eventRef(note)
  const at = new Date(now).toISOString().replace('Z', '000Z')
  const count = times + (before === undefined ? 0 : countOf(before))
  const event: Resource = {
    apiVersion: EVENT.apiVersion,
    kind: EVENT.kind,
    metadata: { namespace: ref.namespace!, name: ref.name },
    action: before?.action ?? reason,
    eventTime: before?.eventTime ?? at,
    note: before?.note ?? cut(message),
    reason,
    regarding: before?.regarding ?? { ...about },
    reportingController: before?.reportingController ?? 'postern',
    reportingInstance: before?.reportingInstance ?? hostname(),
    type,
  }
  if (count > 1) event.series = { count, lastObservedTime: at }
  return event
}

function countOf(event: Resource): number {
  return (event.series as { count?: number } | undefined)?.count ?? 1
}

/** Lets so many notes about one object pass in a minute. */
export class EventRate {
  readonly #now: () => number
  readonly #rates = new Map<string, { since: number; count: number }>()

  constructor(now: () => number) {
    this.#now = now
  }

  mayPass({ about }: EventNote): boolean {
    const now = this.#now()
    const key = `${about.apiVersion} ${describeRef(about)}`
    const rate = this.#rates.get(key)
    if (rate !== undefined && now >= rate.since && now - rate.since < MINUTE)
      return ++rate.count <= PER_MINUTE
    if (this.#rates.size >= OBJECTS) {
      for (const [other, { since }] of this.#rates) if (now - since >= MINUTE) this.#rates.delete(other)
    }
    this.#rates.set(key, { since: now, count: 1 })
    return true
  }
}

function cut(text: string): string {
  const bytes = Buffer.from(text)
  return bytes.length <= NOTE_BYTES ? text : `${bytes.subarray(0, NOTE_BYTES - 8).toString()}…`
}
