import type { EventNote } from '../cluster.ts'
import { EventRate, eventOf, eventRef } from '../event-notes.ts'
import { EVENT } from '../kinds.ts'
import type { Store } from './store.ts'

const MANAGER = 'postern/events'
const KEPT = 1000
const WAITING = 1000

/**
 * Event objects (events.k8s.io/v1): the same reason and message about the same object is one event with a count, also
 * after a restart. Written after the caller went on, and given up without a word when that fails.
 */
export class EventRecorder {
  readonly #store: Store
  readonly #now: () => number
  readonly #rate: EventRate
  #waiting: EventNote[] = []

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store
    this.#now = now
    this.#rate = new EventRate(now)
  }

  note(note: EventNote): void {
    if (!this.#rate.mayPass(note) || this.#waiting.length >= WAITING) return
    if (this.#waiting.length === 0) setImmediate(() => this.flush())
    this.#waiting.push(note)
  }

  /** Writes what waits. */
  flush(): void {
    const notes = this.#waiting
    this.#waiting = []
    for (const note of notes) {
      try {
        const before = this.#store.get(eventRef(note))
        this.#store.apply(eventOf(note, before, 1, this.#now()), MANAGER)
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
}
