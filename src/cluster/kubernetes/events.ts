import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '../../core/logger.ts'
import { keyFor, type Resource } from '../../core/resource.ts'
import type { EventNote } from '../cluster.ts'
import { EventRate, eventOf, eventRef } from '../event-notes.ts'
import { EVENT } from '../kinds.ts'
import type { Api } from './api.ts'
import { ApiError } from './api-error.ts'

const MANAGER = 'postern/events'
const WAITING = 1000
/** What is not known any more is read again when it is seen again. */
const KNOWN = 100
/** What comes within it is one write an event. */
const GATHER_MS = 200
/** What an end may take for events that still wait: there may be a thousand, and they are only by the way. */
const CLOSE_MS = 3_000

/**
 * Event objects (events.k8s.io/v1) of an API server: the same reason and message about the same object is one event
 * with a count. Written later and by the way; given up with a line in the debug log when that fails.
 */
export class EventRecorder {
  readonly #api: Api
  readonly #log: Logger
  readonly #now: () => number
  readonly #rate: EventRate
  /** By key, what waits and how often it was noted. */
  readonly #waiting = new Map<string, { note: EventNote; times: number }>()
  /** The newest events that were written: the server keeps them for an hour. */
  readonly #known = new Map<string, Resource>()
  #flushing: Promise<void> | undefined
  #over = false

  constructor(api: Api, log: Logger, now: () => number = Date.now) {
    this.#api = api
    this.#log = log
    this.#now = now
    this.#rate = new EventRate(now)
  }

  note(note: EventNote): void {
    if (!this.#rate.mayPass(note)) return
    const ref = eventRef(note)
    const key = keyFor(ref.namespace, ref.name)
    const waiting = this.#waiting.get(key)
    if (waiting !== undefined) waiting.times++
    else if (this.#waiting.size < WAITING) this.#waiting.set(key, { note, times: 1 })
    this.#flushing ??= this.#flush()
  }

  /** Resolves once what waits was written, or given up. */
  async idle(): Promise<void> {
    await this.#flushing
  }

  /** Writes what waits, within a few seconds; the rest is given up. */
  async close(): Promise<void> {
    const done = new AbortController()
    const late = pause(CLOSE_MS, undefined, { signal: done.signal }).catch(() => {})
    await Promise.race([this.#flushing, late])
    done.abort()
    this.#over = true
  }

  async #flush(): Promise<void> {
    while (this.#waiting.size > 0 && !this.#over) {
      await pause(GATHER_MS)
      const batch = [...this.#waiting]
      this.#waiting.clear()
      for (const [key, { note, times }] of batch) {
        if (this.#over) break
        try {
          await this.#write(key, note, times)
        } catch (error) {
          this.#log.debug({ event: key, error: String(error) }, 'event not written')
        }
      }
    }
    this.#flushing = undefined
  }

  async #write(key: string, note: EventNote, times: number): Promise<void> {
    const ref = eventRef(note)
    const before = this.#known.get(key) ?? (await this.#find(ref))
    const event = eventOf(note, before, times, this.#now())
    const { object } = await this.#api.apply(EVENT, event, { fieldManager: MANAGER })
    this.#known.delete(key)
    this.#known.set(key, object)
    if (this.#known.size > KNOWN) this.#known.delete(this.#known.keys().next().value!)
  }

  async #find(ref: { namespace?: string; name: string }): Promise<Resource | undefined> {
    try {
      return await this.#api.get(EVENT, ref)
    } catch (error) {
      if (error instanceof ApiError && error.code === 'NotFound') return undefined
      throw error
    }
  }
}
