import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf, PosternError } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import type { Kind, Resource } from '../../core/resource.ts'
import type { Api, Page, Selection, WatchEvent } from './api.ts'
import { Backoff, type BackoffLimits } from './backoff.ts'
import { failureOf } from './failure.ts'
import type { ReflectedCache, Relist, Source } from './reflected-cache.ts'
import { isVersion } from './resource-version.ts'

/** For metrics, and for whoever waits. */
export interface ReflectorHooks {
  /** What `state` says has changed. */
  onState?(kind: Kind): void
  /** A watch is opened again, for whatever reason. */
  onRestart?(kind: Kind): void
  /** Everything is listed again. */
  onRelist?(kind: Kind): void
}

export interface ReflectorOptions<T extends Resource> {
  api: Pick<Api, 'list' | 'watch'>
  kind: Kind<T>
  cache: ReflectedCache<T>
  /** Default all. */
  selection?: Selection
  log: Logger
  hooks?: ReflectorHooks
  /** Least life of a watch in seconds; up to a fifth is added. Default 240. */
  watchSeconds?: number
  /** Resolves or fails at once when it is aborted. */
  pause?: (milliseconds: number, signal: AbortSignal) => Promise<void>
  /** 0 to 1 */
  random?: () => number
  /** Milliseconds since the epoch. */
  now?: () => number
}

export interface ReflectorState {
  /** Whether there was a complete list; the cache stays as it was while there is an error. */
  synced: boolean
  /** Why nothing new comes in just now. */
  error?: string
  /** Milliseconds since the epoch: since when it is synced without an error, or since when it is not. */
  since: number
}

const PAGE = 500
const WATCH_SECONDS = 240
/** A watch that the server ends sooner, and that told nothing, was no good. */
const LASTING_MS = 5_000
/** Between rounds that bring nothing: watches that end at once, versions that are no sooner listed than expired. */
const FRUITLESS: BackoffLimits = { early: 5_000, late: 30_000 }

/**
 * Keeps a cache equal to what the API server has of one selection of a kind: a list in pages, then a watch from there
 * on, which goes on where it was after every failure but for the loss of its version. It never gives up.
 */
export class Reflector<T extends Resource> {
  readonly #options: ReflectorOptions<T>
  readonly #source: Source<T>
  readonly #pause: (milliseconds: number, signal: AbortSignal) => Promise<void>
  readonly #random: () => number
  readonly #now: () => number
  readonly #stop = new AbortController()
  readonly #backoff: Backoff
  readonly #idling: Backoff
  #state: ReflectorState
  #running: Promise<void> | undefined
  /** Up to which all is known; undefined: to be listed. */
  #version: string | undefined
  /** A list that has begun. */
  #listing: { list: Relist<T>; token: string | undefined } | undefined
  #watched = false
  /** The server has taken a watch up, and told nothing yet. */
  #silent = false
  #fruitless = 0

  /** Make all reflectors of a cache before the first is heard of: `ready` of the cache waits for those there are. */
  constructor(options: ReflectorOptions<T>) {
    const { cache, selection, pause, random = Math.random, now = Date.now } = options
    this.#options = options
    this.#source = cache.source(selection?.namespace)
    this.#pause = pause ?? ((milliseconds, signal) => sleep(milliseconds, undefined, { signal }))
    this.#random = random
    this.#now = now
    this.#backoff = new Backoff(random)
    this.#idling = new Backoff(random)
    this.#state = { synced: false, since: now() }
  }

  get state(): ReflectorState {
    return this.#state
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Ends the watch; the cache stays as it is. Resolves once nothing runs any more. */
  async close(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      this.#silent = false
      try {
        if (this.#version === undefined) await this.#list()
        else await this.#watch(this.#version)
      } catch (error) {
        if (!signal.aborted) await this.#failed(error)
      }
    }
  }

  async #list(): Promise<void> {
    const { log, kind } = this.#options
    this.#listing ??= { list: this.#source.relist(), token: undefined }
    const listing = this.#listing
    let page: Page<T>
    do {
      page = await this.#page(listing.token)
      if (this.#stop.signal.aborted) return
      const skipped = listing.list.add(page.items)
      if (skipped > 0) log.warn({ kind: kind.kind, skipped }, 'items of a list made no sense and are skipped')
      listing.token = page.continue
    } while (page.continue !== undefined)
    this.#listing = undefined
    // The version is the same on all pages of a consistent list.
    listing.list.commit(page.resourceVersion)
    this.#version = page.resourceVersion
    this.#backoff.reset()
    this.#follows()
  }

  async #page(token: string | undefined): Promise<Page<T>> {
    const { api, kind, cache, selection } = this.#options
    const page = await api.list(kind, {
      ...selection,
      limit: PAGE,
      ...(token === undefined ? {} : { continue: token }),
      ...(cache.metadataOnly ? { metadataOnly: true } : {}),
      signal: this.#stop.signal,
    })
    const wrong = !isVersion(page.resourceVersion)
      ? 'has no resourceVersion that is a decimal number'
      : token !== undefined && page.continue === token
        ? 'does not get on from page to page'
        : undefined
    if (wrong === undefined) return page
    // Whatever answered, its other pages are no better.
    this.#listing = undefined
    throw new PosternError('BadList', `the list of ${kind.plural} ${wrong}: is this a Kubernetes API server?`)
  }

  async #watch(resourceVersion: string): Promise<void> {
    const { api, kind, cache, selection, hooks, watchSeconds = WATCH_SECONDS } = this.#options
    if (this.#watched) hooks?.onRestart?.(kind)
    this.#watched = true
    const began = this.#now()
    let heard = false
    let nonsense = 0
    const events = api.watch(kind, {
      ...selection,
      ...(cache.metadataOnly ? { metadataOnly: true } : {}),
      resourceVersion,
      timeoutSeconds: watchSeconds + Math.floor(this.#random() * (watchSeconds / 4.8 + 1)),
      opened: () => {
        this.#silent = true
        this.#follows()
      },
      signal: this.#stop.signal,
    })
    for await (const event of events) {
      if (this.#stop.signal.aborted) return
      if (this.#hear(event)) heard = true
      else if (nonsense++ === 0) {
        this.#options.log.warn(
          { kind: kind.kind, type: event?.type },
          'a watch event made no sense and is skipped',
        )
      }
    }
    // It ended in order, so the server is well: it goes on at once, unless that brings nothing time and again.
    this.#backoff.reset()
    this.#follows()
    if (this.#now() - began >= LASTING_MS) this.#fruitful()
    else if (!heard && this.#fruitless++ > 0) await this.#wait(this.#idling.next(FRUITLESS))
  }

  #hear(event: WatchEvent<T>): boolean {
    const seen = this.#source.event(event)
    if (seen === undefined) return false
    this.#version = seen
    this.#silent = false
    this.#backoff.reset()
    this.#fruitful()
    this.#follows()
    return true
  }

  /** Nothing is wrong, or no longer. */
  #follows(): void {
    if (this.#state.synced && this.#state.error === undefined) return
    const { log, kind } = this.#options
    log.info({ kind: kind.kind }, this.#state.synced ? 'following a kind again' : 'following a kind')
    this.#state = { synced: true, since: this.#now() }
    this.#options.hooks?.onState?.(kind)
  }

  #fruitful(): void {
    this.#fruitless = 0
    this.#idling.reset()
  }

  async #failed(error: unknown): Promise<void> {
    const { expired, stuck, limits, least } = failureOf(error, this.#silent)
    // The first loss of a version after something came costs no wait. That a list came is not enough: it might expire
    // again at once, for ever.
    const lost = (expired || stuck) && this.#anew()
    const again = lost && this.#fruitless++ > 0 ? this.#idling.next(FRUITLESS) : 0
    if (expired && lost) {
      this.#options.log.debug({ kind: this.#options.kind.kind }, 'the version has expired: listing again')
      if (again > 0 || least > 0) await this.#wait(Math.max(again, least))
      return
    }
    this.#fails(messageOf(error))
    await this.#wait(Math.max(again, this.#backoff.next(limits, least)))
  }

  #fails(error: string): void {
    const { log, kind } = this.#options
    const { synced, since, error: before } = this.#state
    this.#state = { synced, error, since: synced && before === undefined ? this.#now() : since }
    if (before === error) return
    log.warn({ kind: kind.kind, error }, 'not following a kind')
    this.#options.hooks?.onState?.(kind)
  }

  /** Forgets where it was. Returns whether it was anywhere. */
  #anew(): boolean {
    const { kind, hooks } = this.#options
    if (this.#version === undefined && this.#listing?.token === undefined) return false
    this.#version = undefined
    this.#listing = undefined
    hooks?.onRelist?.(kind)
    return true
  }

  async #wait(milliseconds: number): Promise<void> {
    try {
      await this.#pause(milliseconds, this.#stop.signal)
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error
    }
  }
}
