import { X509Certificate } from 'node:crypto'
import { Agent, request } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { messageOf, PosternError } from '../core/errors.ts'

/** Where an agent reports, and what it is pinned by. */
export interface ReportSource {
  host: string
  port: number
  /** PEM of the one certificate that is accepted. */
  certificate: string
  token: string
}

/** What is known of an agent: its newest report, or why there is none. */
export interface ReportView<Report> {
  report?: Report
  /** Set while the agent cannot be asked; the report is dropped, since it may be stale. */
  error?: string
}

interface Follower<Report> {
  source: ReportSource
  /** One connection, kept between polls: a busy agent answers many times a second. */
  connections: Agent
  stop: AbortController
  view: ReportView<Report>
}

const POLL_TIMEOUT = 40_000
const RETIRE_TIMEOUT = 10_000
const MAX_ANSWER = 64 * 1024
const MAX_REPORT = 8 * 1024 * 1024
const RETRY_FIRST = 100
const RETRY_MOST = 5_000

/**
 * Follows the reports of agents by long poll: a change is seen in milliseconds, and an agent that is silent or
 * gone loses its report, so that nobody goes on believing it.
 */
export class Reports<Report extends { revision: number }> {
  readonly #guard: (document: unknown) => Report
  readonly #changed: (key: string) => void
  readonly #followers = new Map<string, Follower<Report>>()
  readonly #closed = new AbortController()

  /**
   * @param guard   turns a parsed document into a report, or throws
   * @param changed told of the key of each agent whose view changed
   */
  constructor(guard: (document: unknown) => Report, changed: (key: string) => void) {
    this.#guard = guard
    this.#changed = changed
  }

  get(key: string): ReportView<Report> | undefined {
    return this.#followers.get(key)?.view
  }

  /** Follows an agent from now on, or, without a source, no longer. The same source again changes nothing. */
  follow(key: string, source: ReportSource | undefined): void {
    const old = this.#followers.get(key)
    if (old !== undefined && source !== undefined && sameSource(old.source, source)) return
    if (old === undefined && source === undefined) return
    if (old !== undefined) end(old)
    this.#followers.delete(key)
    if (source !== undefined) {
      const follower: Follower<Report> = {
        source,
        connections: new Agent({ keepAlive: true, maxSockets: 1 }),
        stop: new AbortController(),
        view: {},
      }
      this.#followers.set(key, follower)
      void this.#run(key, follower)
    }
    this.#changed(key)
  }

  /**
   * Tells an agent that it has a successor, or needs none: if it was told to end, it may do so now. Resolves once
   * the agent has answered, on a connection of its own.
   *
   * @throws PosternError RetireFailed
   */
  async retire(source: ReportSource): Promise<void> {
    try {
      const { status } = await ask(source, {
        method: 'POST',
        path: '/retire',
        agent: false,
        signal: AbortSignal.any([this.#closed.signal, AbortSignal.timeout(RETIRE_TIMEOUT)]),
        timeout: RETIRE_TIMEOUT,
        most: MAX_ANSWER,
      })
      if (status !== 202) throw new PosternError('ReportRefused', `the agent answered ${status}`)
    } catch (cause) {
      throw new PosternError(
        'RetireFailed',
        `the agent at ${source.host}:${source.port} could not be told that it may end (${messageOf(cause)}); it ends by itself when its time to linger is over`,
        { cause },
      )
    }
  }

  close(): void {
    this.#closed.abort(new PosternError('ReportsClosed', 'the operator stops'))
    for (const follower of this.#followers.values()) end(follower)
    this.#followers.clear()
  }

  async #run(key: string, follower: Follower<Report>): Promise<void> {
    const { signal } = follower.stop
    let retry = RETRY_FIRST
    while (!signal.aborted) {
      try {
        const after = follower.view.report?.revision
        const report = this.#guard(JSON.parse(await poll(follower, after, signal)))
        if (signal.aborted) return
        retry = RETRY_FIRST
        // A smaller revision is an agent that started anew: as much a change as a larger one.
        if (report.revision !== after || follower.view.error !== undefined) {
          follower.view = { report }
          this.#changed(key)
        }
      } catch (error) {
        if (signal.aborted) return
        const message = messageOf(error)
        if (follower.view.report !== undefined || follower.view.error !== message) {
          follower.view = { error: message }
          this.#changed(key)
        }
        await pause(retry, undefined, { signal }).catch(() => {})
        retry = Math.min(RETRY_MOST, retry * 2)
      }
    }
  }
}

function end(follower: Follower<unknown>): void {
  follower.stop.abort()
  follower.connections.destroy()
}

function sameSource(a: ReportSource, b: ReportSource): boolean {
  return a.host === b.host && a.port === b.port && a.certificate === b.certificate && a.token === b.token
}

async function poll(
  { source, connections }: Follower<unknown>,
  after: number | undefined,
  signal: AbortSignal,
): Promise<string> {
  const { status, body } = await ask(source, {
    method: 'GET',
    path: after === undefined ? '/report' : `/report?after=${after}`,
    agent: connections,
    signal,
    timeout: POLL_TIMEOUT,
    most: MAX_REPORT,
  })
  if (status !== 200) throw new PosternError('ReportRefused', `the agent answered ${status}`)
  return body
}

interface Asking {
  method: 'GET' | 'POST'
  path: string
  /** false: a connection for this request alone. */
  agent: Agent | false
  signal: AbortSignal
  /** Milliseconds without a sign of life. */
  timeout: number
  /** Longest answer, in bytes. */
  most: number
}

/** One request. The token is sent only once the peer has proven to hold the pinned certificate's key. */
function ask(
  source: ReportSource,
  { most, ...options }: Asking,
): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const pinned = new X509Certificate(source.certificate).fingerprint256
    const call = request(
      {
        ...options,
        host: source.host,
        port: source.port,
        headers: { authorization: `Bearer ${source.token}` },
        ca: source.certificate,
        checkServerIdentity: (_host, certificate) =>
          certificate.fingerprint256 === pinned
            ? undefined
            : new PosternError(
                'ReportUntrusted',
                "the agent's certificate is not the one in its keys Secret",
              ),
        minVersion: 'TLSv1.3',
      },
      (response) => {
        const chunks: Buffer[] = []
        let size = 0
        response.on('data', (chunk: Buffer) => {
          size += chunk.length
          if (size > most) call.destroy(new PosternError('ReportTooLarge', 'the report is too large'))
          else chunks.push(chunk)
        })
        response.on('error', reject)
        response.on('end', () =>
          resolve({ status: response.statusCode, body: Buffer.concat(chunks).toString('utf8') }),
        )
      },
    )
    call.on('timeout', () => call.destroy(new PosternError('ReportTimeout', 'the agent does not answer')))
    call.on('error', reject)
    call.on('socket', (socket) => (socket as TLSSocket).setNoDelay(true))
    call.end()
  })
}
