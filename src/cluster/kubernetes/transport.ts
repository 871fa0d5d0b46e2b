import type { SecureContext } from 'node:tls'
import { type Dispatcher, Pool } from 'undici'
import { messageOf } from '../../core/errors.ts'
import {
  type Answer,
  ApiError,
  answerError,
  isJson,
  localError,
  networkError,
  type Subject,
} from './api-error.ts'
import { type Credential, type Credentials, credentialsOf } from './credentials.ts'
import { Deadline } from './deadline.ts'
import type { ConnectionSettings } from './settings.ts'
import { TlsSource } from './tls-source.ts'

export interface RequestNote {
  method: string
  /** HTTP status, or `error` when there was no answer. */
  code: string
  /** Until the whole answer was there; of a watch, until it began. */
  seconds: number
}

export interface TransportOptions {
  /** Who asks, for the User-Agent: `operator`, `cli`. */
  component: string
  /** Postern's version, for the User-Agent. */
  version: string
  onRequest?: (note: RequestNote) => void
  /** Milliseconds for a whole answer, and for a watch to begin. */
  timeout?: number
  /** Milliseconds of a clock that only runs forward. */
  now?: () => number
}

export interface Call extends Subject {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** With its query. */
  path: string
  accept?: string
  body?: { type: string; text: string }
  signal?: AbortSignal
  /** Bytes of the answer, at most. */
  limit?: number
}

export interface Stream {
  /** Fails with an `ApiError`, or with the reason of the call's signal. */
  chunks: AsyncIterable<Buffer>
  close(): void
}

/** What requests go through; replaced as a whole when a certificate changes. */
interface Lines {
  context: SecureContext | undefined
  requests: Pool
  /** One connection a watch, so that none waits for another. */
  watches: Pool
}

interface Ready {
  credential: Credential
  lines: Lines
}

const TIMEOUT = 30_000
const MAX_ANSWER = 8 * 1024 * 1024
/** Enough for every worker of a controller at once; more would only queue in the server. */
const MAX_CONNECTIONS = 32
const IDLE = 60_000

/** HTTP to one API server: connections, certificates, tokens and time limits. HTTP/1.1 only. */
export class Transport {
  readonly #settings: ConnectionSettings
  readonly #options: TransportOptions
  readonly #credentials: Credentials
  readonly #tls: TlsSource | undefined
  readonly #origin: string
  readonly #base: string
  readonly #timeout: number
  readonly #now: () => number
  #lines: Lines | undefined
  /** Those in use, and those replaced whose answers are still coming. */
  readonly #open = new Set<Pool>()
  #closed = false

  constructor(settings: ConnectionSettings, options: TransportOptions) {
    const url = new URL(settings.server)
    this.#settings = settings
    this.#options = options
    this.#timeout = options.timeout ?? TIMEOUT
    this.#now = options.now ?? (() => performance.now())
    this.#credentials = credentialsOf(settings.user, this.#now)
    this.#tls = url.protocol === 'https:' ? new TlsSource(settings, this.#now) : undefined
    this.#origin = url.origin
    this.#base = url.pathname.replace(/\/+$/, '')
  }

  /**
   * Sends a call and reads its whole answer, which is JSON.
   *
   * @throws ApiError also for an answer of 300 and above
   */
  async request(call: Call): Promise<{ status: number; document: unknown }> {
    const answer = await this.#twice(call, (ready) => this.#exchange(call, ready))
    if (answer.status >= 300 || !isJson(answer)) throw answerError(call, answer)
    try {
      return { status: answer.status, document: JSON.parse(answer.body.toString('utf8')) }
    } catch {
      throw answerError(call, answer)
    }
  }

  /**
   * Sends a call whose answer goes on.
   *
   * @param life milliseconds after which a stream that has not ended is torn down
   * @throws ApiError also for an answer of 300 and above
   */
  async stream(call: Call, life: number): Promise<Stream> {
    const opened = await this.#twice(call, (ready) => this.#begin(call, ready, life))
    if ('chunks' in opened) return opened
    throw answerError(call, opened)
  }

  /** Ends everything at once, what is under way included. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#open].map((pool) => pool.destroy()))
  }

  /** Once more after a 401, if there are other credentials by now. */
  async #twice<T extends Stream | Answer>(call: Call, send: (ready: Ready) => Promise<T>): Promise<T> {
    const first = await this.#ready(call, this.#credentials.current())
    const answer = await send(first)
    if (!('status' in answer) || answer.status !== 401) return answer
    this.#tls?.forget()
    const second = await this.#ready(call, this.#credentials.renew(first.credential))
    const same = second.lines === first.lines && second.credential.token === first.credential.token
    return same ? answer : send(second)
  }

  async #ready(call: Call, credential: Promise<Credential>): Promise<Ready> {
    const { signal } = call
    try {
      signal?.throwIfAborted()
      const found = await credential
      signal?.throwIfAborted()
      if (this.#closed) throw localError(call, 'NoAnswer', 'the client is closed')
      return { credential: found, lines: this.#linesFor(found) }
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      if (error instanceof ApiError) throw error
      throw localError(call, 'CredentialsUnavailable', messageOf(error), error)
    }
  }

  #linesFor(credential: Credential): Lines {
    const context = this.#tls?.context(credential)
    const old = this.#lines
    if (old !== undefined && old.context === context) return old
    const { tls } = this.#settings
    const connect = {
      keepAlive: true,
      keepAliveInitialDelay: 15_000,
      timeout: Math.min(10_000, this.#timeout),
      ...(context === undefined ? {} : { secureContext: context, rejectUnauthorized: !tls.insecure }),
      ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
    }
    // Our own deadline covers the whole of a request, so undici's timers are off; a watch has only its begin.
    const common = { pipelining: 1, allowH2: false, keepAliveTimeout: IDLE, bodyTimeout: 0, connect }
    const lines = {
      context,
      requests: new Pool(this.#origin, { ...common, connections: MAX_CONNECTIONS, headersTimeout: 0 }),
      watches: new Pool(this.#origin, { ...common, headersTimeout: this.#timeout }),
    }
    this.#open.add(lines.requests).add(lines.watches)
    this.#lines = lines
    if (old !== undefined) {
      for (const pool of [old.requests, old.watches]) {
        // Waits for what is under way: a watch ends in its own time.
        const done = (): boolean => this.#open.delete(pool)
        pool.close().then(done, done)
      }
    }
    return lines
  }

  async #exchange(call: Call, { credential, lines }: Ready): Promise<Answer> {
    const started = this.#now()
    const late = `no whole answer within ${this.#timeout / 1000} s: check the API server's load, and try again`
    const deadline = new Deadline(this.#timeout, localError(call, 'TimedOut', late), call.signal)
    let code = 'error'
    try {
      const response = await lines.requests.request(this.#message(call, credential, deadline.signal))
      const body = await readAll(call, response.body)
      code = String(response.statusCode)
      return { status: response.statusCode, headers: response.headers, body }
    } catch (error) {
      throw this.#failure(call, deadline, error)
    } finally {
      deadline.end()
      this.#note(call, code, started)
    }
  }

  async #begin(call: Call, { credential, lines }: Ready, life: number): Promise<Stream | Answer> {
    const started = this.#now()
    const late = `the stream did not end when it should have, ${life / 1000} s after its begin: the connection hung`
    const deadline = new Deadline(life, localError(call, 'TimedOut', late), call.signal)
    let code = 'error'
    try {
      const response = await lines.watches.request(this.#message(call, credential, deadline.signal))
      const { statusCode: status, headers, body } = response
      // Closing a stream that has not ended is an error to undici, and none to us.
      body.on('error', () => {})
      code = String(status)
      if (status < 300 && isJson({ headers })) return this.#streamOf(call, deadline, body)
      const answer = { status, headers, body: await readAll(call, body) }
      deadline.end()
      return answer
    } catch (error) {
      deadline.end()
      throw this.#failure(call, deadline, error)
    } finally {
      this.#note(call, code, started)
    }
  }

  #streamOf(call: Call, deadline: Deadline, body: Dispatcher.ResponseData['body']): Stream {
    const failure = (error: unknown): unknown => this.#failure(call, deadline, error)
    return {
      chunks: (async function* () {
        try {
          for await (const chunk of body) yield chunk as Buffer
        } catch (error) {
          throw failure(error)
        } finally {
          deadline.end()
        }
      })(),
      close() {
        deadline.end()
        body.destroy()
      },
    }
  }

  #message(call: Call, credential: Credential, signal: AbortSignal): Dispatcher.RequestOptions {
    const headers: Record<string, string> = {
      accept: call.accept ?? 'application/json',
      'user-agent': `postern/${this.#options.version} (${this.#options.component})`,
    }
    if (credential.token !== undefined) headers.authorization = `Bearer ${credential.token}`
    if (call.body !== undefined) headers['content-type'] = call.body.type
    const path = `${this.#base}${call.path}`
    return { method: call.method, path, headers, signal, body: call.body?.text ?? null }
  }

  #failure(call: Call, deadline: Deadline, error: unknown): unknown {
    if (call.signal?.aborted) return call.signal.reason
    if (deadline.signal.aborted) return deadline.signal.reason
    if (error instanceof ApiError) return error
    if (this.#closed) return localError(call, 'NoAnswer', 'the client is closed', error)
    return networkError(call, this.#settings.server, this.#settings.source, error)
  }

  #note(call: Call, code: string, started: number): void {
    this.#options.onRequest?.({ method: call.method, code, seconds: (this.#now() - started) / 1000 })
  }
}

async function readAll(call: Call, body: Dispatcher.ResponseData['body']): Promise<Buffer> {
  const limit = call.limit ?? MAX_ANSWER
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limit) {
      const fault = `the answer is larger than ${Math.floor(limit / 1024 / 1024)} MiB: check what the server holds there`
      throw localError(call, 'AnswerTooLarge', fault)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}
