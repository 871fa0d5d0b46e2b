import type { Cluster } from '../cluster/cluster.ts'
import { ClusterError } from '../cluster/errors.ts'
import type { Lease } from '../cluster/kinds.ts'
import type { Logger } from '../core/logger.ts'
import type { Resource } from '../core/resource.ts'
import { type Leadership, runWithLeadership } from './leader.ts'

/** Time that passes only when a test says so. */
export class Timeline {
  now = 0
  /** Called after everything that happens. */
  check: () => void = () => {}
  readonly #timers = new Set<{ at: number; run: () => void }>()

  /** @returns the way to cancel */
  at(time: number, run: () => void): () => void {
    const timer = { at: time, run }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  async advance(milliseconds: number): Promise<void> {
    const end = this.now + milliseconds
    await settle()
    for (;;) {
      let next: { at: number; run: () => void } | undefined
      for (const timer of this.#timers) if (next === undefined || timer.at < next.at) next = timer
      if (next === undefined || next.at > end) break
      this.#timers.delete(next)
      this.now = Math.max(this.now, next.at)
      next.run()
      await settle()
      this.check()
    }
    this.now = end
    this.check()
  }
}

/** Lets all promises run that can. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** One Lease, with the API server's rules. */
export class LeaseServer {
  lease: Lease | undefined
  forbidden: 'get' | 'create' | 'apply' | undefined
  /** On the timeline. */
  writtenAt = 0
  /** Writes that came too late. */
  conflicts = 0
  #version = 0

  get(): Lease | undefined {
    this.#check('get')
    return structuredClone(this.lease)
  }

  create(lease: Lease, now: number): Lease {
    this.#check('create')
    if (this.lease !== undefined) throw new ClusterError('AlreadyExists', 'it is there already')
    return this.#put(lease, now)
  }

  apply(lease: Lease, now: number): void {
    this.#check('apply')
    const version = lease.metadata.resourceVersion
    if (version !== undefined && version !== this.lease?.metadata.resourceVersion) {
      this.conflicts++
      throw new ClusterError('Conflict', 'it was changed since')
    }
    this.#put(lease, now)
  }

  steal(holderIdentity: string): void {
    const lease = structuredClone(this.lease!)
    lease.spec = { ...lease.spec, holderIdentity, leaseTransitions: 99 }
    this.#put(lease, this.writtenAt)
  }

  #put(lease: Lease, now: number): Lease {
    this.writtenAt = now
    this.lease = structuredClone(lease)
    this.lease.metadata.resourceVersion = String(++this.#version)
    return structuredClone(this.lease)
  }

  #check(verb: 'get' | 'create' | 'apply'): void {
    if (this.forbidden === verb) throw new ClusterError('Forbidden', `${verb} is forbidden`)
  }
}

/** A process with a clock of its own, a connection that may fail, and a leadership to gain. */
export class Host {
  readonly identity: string
  readonly said: string[] = []
  readonly leadership: Leadership
  alive = true
  /** Nothing of it runs until then. */
  frozenUntil = 0
  network: 'fine' | 'lost-requests' | 'lost-answers' | 'errors' = 'fine'
  /** One way, in milliseconds. */
  latency = 5
  wallOffset = 0
  /** How long its work takes to end. */
  finishAfter = 0
  failAfter: number | undefined
  readonly #time: Timeline
  readonly #server: LeaseServer

  /** @param rate how fast its clocks go */
  constructor(identity: string, time: Timeline, server: LeaseServer, log: Logger, rate = 1) {
    this.identity = identity
    this.#time = time
    this.#server = server
    let random = identity.length
    this.leadership = runWithLeadership({
      cluster: this.#client(),
      namespace: 'space',
      name: 'postern',
      identity,
      log,
      elapsed: () => time.now * rate,
      now: () => 1_700_000_000_000 + time.now * rate + this.wallOffset,
      pause: (milliseconds, signal) => this.pause(milliseconds / rate, signal),
      random: () => (random = (random * 7.31 + 0.137) % 1),
      onStarted: async (signal) => {
        this.said.push('started')
        await this.#work(signal)
        this.said.push('ended')
      },
      onStopped: (how) => this.said.push(how),
    })
  }

  /** Ends early at the signal; runs only while the process does. */
  pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve()
      const wake = (): void => {
        if (!this.alive) return
        if (this.frozenUntil > this.#time.now) cancel = this.#time.at(this.frozenUntil, wake)
        else resolve()
      }
      let cancel = this.#time.at(this.#time.now + milliseconds, wake)
      signal?.addEventListener('abort', () => {
        cancel()
        resolve()
      })
    })
  }

  async #work(signal: AbortSignal): Promise<void> {
    if (this.failAfter !== undefined) {
      await this.pause(this.failAfter)
      throw new Error('the work failed')
    }
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    if (this.finishAfter > 0) await this.pause(this.finishAfter)
  }

  #client(): Pick<Cluster, 'get' | 'create' | 'apply'> {
    const now = (): number => this.#time.now
    return {
      get: async <T extends Resource>() =>
        (await this.#request(() => this.#server.get())) as unknown as T | undefined,
      create: (object) => this.#request(() => this.#server.create(object as Lease, now())),
      apply: async (object) => {
        await this.#request(() => this.#server.apply(object as Lease, now()))
        return 'changed'
      },
    }
  }

  async #request<T>(work: () => T): Promise<T> {
    const { network } = this
    if (network === 'errors') throw new ClusterError('Unavailable', '503')
    // What is on its way arrives, whether or not its sender still runs.
    await new Promise<void>((resolve) => {
      this.#time.at(this.#time.now + this.latency, resolve)
    })
    if (network === 'lost-requests') return new Promise(() => {})
    const answer = attempt(work)
    if (network === 'lost-answers') return new Promise(() => {})
    await this.pause(this.latency)
    return answer()
  }
}

function attempt<T>(work: () => T): () => T {
  try {
    const result = work()
    return () => result
  } catch (error) {
    return () => {
      throw error
    }
  }
}
