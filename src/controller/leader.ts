import { setTimeout as sleep } from 'node:timers/promises'
import type { Cluster } from '../cluster/cluster.ts'
import { LEASE, type Lease } from '../cluster/kinds.ts'
import { codeOf, messageOf, PosternError } from '../core/errors.ts'
import type { Logger } from '../core/logger.ts'

/** Milliseconds, as client-go has them. */
export const LEASE_DURATION = 15_000
export const RENEW_DEADLINE = 10_000
const RETRY_PERIOD = 2_000
/** One lost answer must not cost the leadership. */
const CALL_LIMIT = 4_000
const LONGEST_LEASE = 3600
const MANAGER = 'postern/leader'

export interface LeadershipOptions {
  cluster: Pick<Cluster, 'get' | 'create' | 'apply'>
  /** Of the Lease. */
  namespace: string
  name: string
  /** Says who leads; should be another one in every process. */
  identity: string
  log: Logger
  /** The work of the leader: until the signal, then it resolves once it has stopped writing. */
  onStarted(signal: AbortSignal): Promise<void>
  onStopped?(how: 'released' | 'lost'): void
  /** Wall clock in milliseconds: only written into the Lease, for people. */
  now?: () => number
  /** Milliseconds of a clock that never jumps: all that is decided is decided by it. */
  elapsed?: () => number
  pause?: (milliseconds: number, signal: AbortSignal) => Promise<void>
  random?: () => number
}

export interface Leadership {
  /** Whether this process leads: false as soon as another one may, even where nothing has run to notice it. */
  leads(): boolean
  /** Why the Lease cannot be had or held, for a person; undefined when all is well. */
  problem(): string | undefined
  /** Resolves after `close`; rejects with `LeadershipLost`, or with what the work failed with. */
  readonly done: Promise<void>
  /** Ends the work, then releases the Lease, so that another takes over at once. Again is the same. */
  close(): Promise<void>
}

/** What makes one term of office different from every other. */
interface Term {
  transitions: number
  acquireTime: string
}

/**
 * Leads while it holds a Lease. Clocks of machines are never compared: a candidate takes a Lease over once it has not
 * seen it change for as long as it is for, by its own clock, and a leader stops before that, by its own.
 */
export function runWithLeadership(options: LeadershipOptions): Leadership {
  return new Candidate(options)
}

class Candidate implements Leadership {
  readonly done: Promise<void>
  readonly #options: Required<LeadershipOptions>
  readonly #closing = new AbortController()
  /** The Lease as it was last seen, and how long that counts. */
  #seen: { version: string | undefined; at: number; counts: number; transitions: number } | undefined
  #holder = ''
  /** Of the newest try to take the Lease, whether or not its answer came. */
  #term: Term | undefined
  /** When the newest write that is known to have worked was begun. */
  #renewed = Number.NEGATIVE_INFINITY
  #leading = false
  #problem: string | undefined

  constructor(options: LeadershipOptions) {
    this.#options = {
      onStopped: () => {},
      now: Date.now,
      elapsed: () => performance.now(),
      pause: async (milliseconds, signal) => {
        await sleep(milliseconds, undefined, { signal }).catch(() => {})
      },
      random: Math.random,
      ...options,
    }
    this.done = this.#run()
    // It may be lost before anybody waits for it.
    this.done.catch(() => {})
  }

  leads(): boolean {
    return this.#leading && this.#left() > 0
  }

  problem(): string | undefined {
    return this.#problem
  }

  close(): Promise<void> {
    this.#closing.abort()
    return this.done
  }

  async #run(): Promise<void> {
    const { log, identity } = this.#options
    const { signal } = this.#closing
    while (!signal.aborted && !(await this.#attempt())) await this.#pause(this.#retry(), signal)
    if (!signal.aborted) {
      this.#leading = true
      log.info({ lease: this.#what(), identity }, 'leads')
      await this.#lead()
      return
    }
    await this.#release()
  }

  /** Renews until the work has ended. */
  async #lead(): Promise<void> {
    const { onStarted, onStopped, log } = this.#options
    const work = new AbortController()
    const ended = new AbortController()
    let failure: { error: unknown } | undefined
    const stop = (): void => work.abort()
    this.#closing.signal.addEventListener('abort', stop)
    if (this.#closing.signal.aborted) stop()
    onStarted(work.signal)
      .catch((error) => {
        failure = { error }
      })
      .finally(() => ended.abort())
    while (!ended.signal.aborted) {
      await this.#pause(Math.min(this.#retry(), this.#left()), ended.signal)
      if (ended.signal.aborted) break
      const lost = this.#left() <= 0 || (await this.#renew())
      if (!lost) continue
      this.#leading = false
      const error = new PosternError(
        'LeadershipLost',
        `the Lease ${this.#what()} was lost${this.#problem === undefined ? '' : `: ${this.#problem}`}`,
      )
      log.error({ lease: this.#what(), error: error.message }, 'leads no longer')
      work.abort(error)
      onStopped('lost')
      throw error
    }
    this.#closing.signal.removeEventListener('abort', stop)
    await this.#release()
    if (failure !== undefined) throw failure.error
  }

  /** @returns whether the leadership is lost */
  async #renew(): Promise<boolean> {
    await this.#attempt()
    return !this.#leading || this.#left() <= 0
  }

  /** One try to get or keep the Lease. @returns whether it is ours; throws nothing */
  async #attempt(): Promise<boolean> {
    const { log } = this.#options
    try {
      // An answer that was long on its way proves nothing: the next try renews.
      const ours = (await this.#take()) && this.#left() > 0
      if (this.#problem !== undefined) log.info({ lease: this.#what() }, 'the Lease can be had again')
      this.#problem = undefined
      return ours
    } catch (error) {
      // Somebody was faster: the next try sees who.
      if (['Conflict', 'AlreadyExists'].includes(codeOf(error) ?? '')) return false
      const message = messageOf(error)
      if (message !== this.#problem) {
        log.warn({ lease: this.#what(), error: message }, 'cannot get or keep the Lease')
      }
      this.#problem = message
      return false
    }
  }

  async #take(): Promise<boolean> {
    const { cluster, namespace, name, elapsed } = this.#options
    const lease = await this.#call('get', cluster.get(LEASE, { namespace, name }))
    if (lease === undefined) return this.#make()
    if (this.#isOurs(lease)) return this.#write(lease)
    this.#observe(lease)
    if (this.#leading) {
      this.#leading = false
      this.#problem = `${this.#holder === '' ? 'nobody' : this.#holder} holds it now`
      throw new PosternError('LeaseTaken', this.#problem)
    }
    if (elapsed() < this.#seen!.at + this.#seen!.counts) return false
    this.#term = { transitions: this.#seen!.transitions + 1, acquireTime: this.#time() }
    return this.#write(lease)
  }

  #observe(lease: Lease): void {
    const { log, elapsed } = this.#options
    const { holderIdentity: holder = '', leaseDurationSeconds, leaseTransitions } = lease.spec ?? {}
    const version = lease.metadata.resourceVersion
    if (holder !== this.#holder && holder !== '') {
      log.info({ lease: this.#what(), holder }, 'another one leads; waits')
    }
    this.#holder = holder
    if (this.#seen !== undefined && version !== undefined && this.#seen.version === version) return
    const seconds = leaseDurationSeconds ?? LEASE_DURATION / 1000
    const counts = seconds > 0 && seconds <= LONGEST_LEASE ? seconds * 1000 : LEASE_DURATION
    this.#seen = {
      version,
      at: elapsed(),
      counts: holder === '' ? 0 : counts,
      transitions: leaseTransitions ?? 0,
    }
  }

  /** There is no Lease: makes it. One that was deleted counts for as long as it was for. */
  async #make(): Promise<boolean> {
    const { cluster, elapsed } = this.#options
    const seen = this.#seen
    if (!this.#leading && seen !== undefined && elapsed() < seen.at + seen.counts) return false
    const transitions = Math.max(seen?.transitions ?? -1, this.#term?.transitions ?? -1) + 1
    this.#term = { transitions, acquireTime: this.#time() }
    const begun = elapsed()
    await this.#call('create', cluster.create(this.#lease(this.#time()), MANAGER))
    this.#renewed = begun
    return true
  }

  async #write(lease: Lease): Promise<boolean> {
    const { cluster, elapsed } = this.#options
    const { resourceVersion } = lease.metadata
    const begun = elapsed()
    let time = this.#time()
    // A write that changes nothing would be seen by nobody.
    if (time === lease.spec?.renewTime) time = micro(Date.parse(time) + 1)
    const wanted = this.#lease(time)
    if (resourceVersion !== undefined) wanted.metadata.resourceVersion = resourceVersion
    await this.#call('patch', cluster.apply(wanted, MANAGER))
    this.#renewed = begun
    return true
  }

  /** Only once nothing of ours writes any more. */
  async #release(): Promise<void> {
    const { cluster, namespace, name, log, onStopped } = this.#options
    const led = this.#leading
    this.#leading = false
    try {
      // Without a term there was no try, and there is nothing to give back.
      const lease =
        this.#term === undefined
          ? undefined
          : await this.#call('get', cluster.get(LEASE, { namespace, name }))
      if (lease !== undefined && this.#isOurs(lease)) {
        const wanted = this.#lease(this.#time())
        wanted.spec = { ...wanted.spec, holderIdentity: '', leaseDurationSeconds: 1 }
        if (lease.metadata.resourceVersion !== undefined) {
          wanted.metadata.resourceVersion = lease.metadata.resourceVersion
        }
        await this.#call('patch', cluster.apply(wanted, MANAGER))
        log.info({ lease: this.#what() }, 'released the Lease')
      }
    } catch (error) {
      // It runs out by itself.
      log.warn({ lease: this.#what(), error: messageOf(error) }, 'could not release the Lease')
    }
    if (led) onStopped('released')
  }

  #isOurs({ spec }: Lease): boolean {
    return (
      this.#term !== undefined &&
      spec?.holderIdentity === this.#options.identity &&
      spec.leaseTransitions === this.#term.transitions &&
      Date.parse(spec.acquireTime ?? '') === Date.parse(this.#term.acquireTime)
    )
  }

  #lease(renewTime: string): Lease {
    const { namespace, name, identity } = this.#options
    const { apiVersion, kind } = LEASE
    const { transitions, acquireTime } = this.#term!
    return {
      apiVersion,
      kind,
      metadata: { namespace, name },
      spec: {
        holderIdentity: identity,
        leaseDurationSeconds: LEASE_DURATION / 1000,
        acquireTime,
        renewTime,
        leaseTransitions: transitions,
      },
    }
  }

  /** A call that hangs is a call that failed; whether its write comes through later, the term tells. */
  async #call<T>(verb: 'get' | 'create' | 'patch', call: Promise<T>): Promise<T> {
    const limit = this.#leading ? Math.min(CALL_LIMIT, this.#left()) : CALL_LIMIT
    const answered = new AbortController()
    const late = this.#pause(limit, answered.signal).then(() => {
      throw new PosternError('LeaseTimeout', `the API server does not answer (${verb} of the Lease)`)
    })
    late.catch(() => {})
    try {
      return await Promise.race([call, late])
    } catch (error) {
      const code = codeOf(error)
      if (code === 'Forbidden') throw this.#forbidden(verb, error)
      if (code === 'NotFound' && verb === 'create') {
        const text = `there is no namespace ${this.#options.namespace} for the Lease: create it, or name another one`
        throw new PosternError('LeaseNamespaceMissing', text, { cause: error })
      }
      throw error
    } finally {
      answered.abort()
    }
  }

  #forbidden(verb: string, error: unknown): PosternError {
    const { namespace } = this.#options
    return new PosternError(
      'LeaseForbidden',
      `no permission to ${verb} leases.coordination.k8s.io in the namespace ${namespace} (Lease ${this.#what()}): bind a Role ` +
        `there that allows get, create and patch of it, or run one replica without leader election. ${messageOf(error)}`,
      { cause: error },
    )
  }

  #pause(milliseconds: number, signal: AbortSignal): Promise<void> {
    return this.#options.pause(Math.max(0, milliseconds), signal)
  }

  /** Milliseconds until the leadership is over unless it is renewed. */
  #left(): number {
    return this.#renewed + RENEW_DEADLINE - this.#options.elapsed()
  }

  #retry(): number {
    return RETRY_PERIOD * (0.5 + this.#options.random())
  }

  #time(): string {
    return micro(this.#options.now())
  }

  #what(): string {
    return `${this.#options.namespace}/${this.#options.name}`
  }
}

/** MicroTime: exactly six digits behind the point. */
function micro(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace('Z', '000Z')
}
