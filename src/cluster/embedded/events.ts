import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { describeRef, type Ref, type Resource } from '../../core/resource.ts'
import type { EventNote } from '../cluster.ts'
import { EVENT } from '../kinds.ts'
import type { Store } from './store.ts'

const MANAGER = 'postern/events'
const KEPT = 1000
const PER_MINUTE = 25
const WAITING = 1000
const MINUTE = 60_000
/** The API's limit on an event's note. */
const NOTE_BYTES = 1024

/**
 * Event objects (events.k8s.io/v1): the same reason and message about the same object is one event with a count, also
 * after a restart. Written after the caller went on, and given up without a word when that fails.
 */
export class EventRecorder {
  readonly #store: Store
  readonly #now: () => number
  readonly #rates = new Map<string, { since: number; count: number }>()
  #waiting: EventNote[] = []

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store
    this.#now = now
  }

  note(note: EventNote): void {
    if (!this.#mayPass(note) || this.#waiting.length >= WAITING) return
    if (this.#waiting.length === 0) setImmediate(() => this.flush())
    this.#waiting.push(note)
  }

  /** Writes what waits. */
  flush(): void {
    const notes = this.#waiting
    this.#waiting = []
    for (const note of notes) {
      try {
        this.#write(note)
      } catch {
        // An event is a courtesy: the condition beside it says the same, and a full disk is reported elsewhere.
      }
    }
    if (notes.length === 0) return
    try {
      this.#store.trim(EVENT, KEPT)
    } catch {
      // The next event tries again.
    }
  }

  #write({ about, type, reason, message }: EventNote): void {
    const at = new Date(this.#now()).toISOString().replace('Z', '000Z')
    const digest = createHash('sha256')
      .update(JSON.stringify([about.apiVersion, about.kind, about.uid ?? '', type, reason, message]))
      .digest('hex')
    const ref: Ref = {
      apiVersion: EVENT.apiVersion,
      kind: EVENT.kind,
      namespace: about.namespace ?? 'default',
      name: `${about.name.slice(0, 230)}.${digest.slice(0, 16)}`.replace('..', '.'),
    }
    const before = this.#store.get(ref)
    const count = (before?.series as { count?: number } | undefined)?.count ?? 1
    const event: Resource = {
      apiVersion: EVENT.apiVersion,
      kind: EVENT.kind,
      metadata: { namespace: ref.namespace!, name: ref.name },
      action: reason,
      eventTime: before?.eventTime ?? at,
      note: cut(message),
      reason,
      regarding: { ...about },
      reportingController: 'postern',
      reportingInstance: hostname(),
      type,
    }
    if (before !== undefined) event.series = { count: count + 1, lastObservedTime: at }
    this.#store.apply(event, MANAGER)
  }

  #mayPass({ about }: EventNote): boolean {
    const now = this.#now()
    const key = `${about.apiVersion} ${describeRef(about)}`
    const rate = this.#rates.get(key)
    if (rate !== undefined && now >= rate.since && now - rate.since < MINUTE)
      return ++rate.count <= PER_MINUTE
    if (this.#rates.size >= WAITING) {
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
