import type { Resource } from '../core/resource.ts'

/** An event of `events.k8s.io/v1`, with the older members that some writers still use. */
export interface EventLike extends Resource {
  type?: string
  reason?: string
  note?: string
  message?: string
  eventTime?: string
  regarding?: ObjectReference
  involvedObject?: ObjectReference
  series?: { count?: number; lastObservedTime?: string }
  deprecatedCount?: number
  deprecatedLastTimestamp?: string
  count?: number
  lastTimestamp?: string
}

interface ObjectReference {
  kind?: string
  namespace?: string
  name?: string
  uid?: string
}

export function noteOf(event: EventLike): string {
  return event.note ?? event.message ?? ''
}

export function lastSeen(event: EventLike): string | undefined {
  return (
    event.series?.lastObservedTime ??
    event.deprecatedLastTimestamp ??
    event.lastTimestamp ??
    event.eventTime ??
    event.metadata.creationTimestamp
  )
}

export function countOf(event: EventLike): number {
  return event.series?.count ?? event.deprecatedCount ?? event.count ?? 1
}

/** `onionservice/web` */
export function objectOf(event: EventLike): string {
  const about = event.regarding ?? event.involvedObject
  return `${(about?.kind ?? '').toLowerCase()}/${about?.name ?? ''}`
}

/** The events about an object, oldest first. Those of an earlier object of the same name are left out. */
export function eventsAbout(object: Resource, events: readonly EventLike[]): EventLike[] {
  return inTime(
    events.filter((event) => {
      const about = event.regarding ?? event.involvedObject
      return (
        about?.kind === object.kind &&
        about.name === object.metadata.name &&
        (about.namespace ?? '') === (object.metadata.namespace ?? '') &&
        (about.uid === undefined || about.uid === '' || about.uid === object.metadata.uid)
      )
    }),
  )
}

/** Events by when they were last seen, oldest first. */
export function inTime<T extends Resource>(events: readonly T[]): T[] {
  const time = (event: EventLike): number => Date.parse(lastSeen(event) ?? '') || 0
  return events.toSorted((a, b) => time(a) - time(b))
}
