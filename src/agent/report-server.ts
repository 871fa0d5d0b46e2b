import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { messageOf, PosternError } from '../core/errors.ts'
import type { Logger } from '../core/logger.ts'
import type { Revisioned } from './revisions.ts'

export interface ReportCredentials {
  /** PEM */
  certificate: Buffer
  /** PEM */
  key: Buffer
  /** Bearer token; blanks around it do not count. */
  token: Buffer
}

export interface ReportServerOptions {
  host: string
  /** 0 takes any free port. */
  port: number
  report: Revisioned
  log: Logger
  /** How long a poll waits before it is answered with what was known already; default 25 s. */
  pollMs?: number
  /** Default 64. */
  maxConnections?: number
  /** The operator says that this agent has a successor, or needs none: `POST /retire`. Without it there is no such path. */
  onRetire?(): void
}

const TOKEN_MIN = 16
const TOKEN_MAX = 4096

/**
 * Serves the agent's report: `GET /report` at once, `GET /report?after=N` once the revision is above N or after
 * 25 seconds; `POST /retire` is passed on. TLS 1.3 and a bearer token, both from files that may change while it runs. A revision that was
 * never given out yet (the asker knew an agent before this one) is answered at once.
 */
export class ReportServer {
  readonly #options: ReportServerOptions
  readonly #polls = new Set<AbortController>()
  #server: Server | undefined
  #token: Buffer | undefined
  #starting: Promise<void> | undefined

  constructor(options: ReportServerOptions) {
    this.#options = options
  }

  /** The port that it listens on, once it does. */
  get port(): number | undefined {
    const address = this.#server?.address()
    return typeof address === 'object' && address !== null ? address.port : undefined
  }

  /**
   * Takes credentials into use: the first ones open the port, later ones serve new connections; connections
   * with the old token are refused from the next request on.
   *
   * @throws PosternError ReportCredentialsInvalid: the old ones stay in force
   */
  async use(credentials: ReportCredentials): Promise<void> {
    const token = credentials.token.toString('utf8').trim()
    if (token.length < TOKEN_MIN || token.length > TOKEN_MAX) {
      throw new PosternError(
        'ReportCredentialsInvalid',
        `the report's token must have ${TOKEN_MIN} to ${TOKEN_MAX} characters, it has ${token.length}`,
      )
    }
    const pair = { cert: credentials.certificate, key: credentials.key }
    try {
      if (this.#server === undefined) this.#server = this.#create(pair)
      else this.#server.setSecureContext({ ...pair, minVersion: 'TLSv1.3' })
    } catch (error) {
      throw new PosternError(
        'ReportCredentialsInvalid',
        `the report's certificate and key cannot be used: ${messageOf(error)}`,
      )
    }
    this.#token = digest(token)
    this.#starting ??= this.#listen(this.#server).catch((error) => {
      this.#starting = undefined
      throw error
    })
    await this.#starting
  }

  async close(): Promise<void> {
    for (const poll of this.#polls) poll.abort()
    const server = this.#server
    if (server === undefined) return
    await new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeIdleConnections()
      setTimeout(() => server.closeAllConnections(), 500).unref()
    })
  }

  #create(pair: { cert: Buffer; key: Buffer }): Server {
    const server = createServer(
      { ...pair, minVersion: 'TLSv1.3', handshakeTimeout: 10_000, maxHeaderSize: 8192 },
      (request, response) => void this.#answer(request, response),
    )
    server.maxConnections = this.#options.maxConnections ?? 64
    server.headersTimeout = 10_000
    server.requestTimeout = 10_000
    server.keepAliveTimeout = 60_000
    server.on('tlsClientError', (_error, socket) => socket.destroy())
    server.on('clientError', (_error, socket) => socket.destroy())
    return server
  }

  #listen(server: Server): Promise<void> {
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host: this.#options.host, port: this.#options.port }, () => {
        server.off('error', reject)
        server.on('error', (error) => this.#options.log.warn({ error: error.message }, 'report server'))
        resolve()
      })
    })
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader('cache-control', 'no-store')
    response.on('error', () => {})
    if (!this.#authorized(request.headers.authorization)) {
      response.setHeader('www-authenticate', 'Bearer')
      return refuse(response, 401, 'the bearer token is missing or wrong')
    }
    const [path, query] = (request.url ?? '/').split('?', 2)
    if (path === '/retire' && this.#options.onRetire !== undefined) return this.#retire(request, response)
    if (request.method !== 'GET') return refuse(response, 405, 'only GET is served here')
    if (path !== '/report') return refuse(response, 404, 'only /report is served here')
    const after = new URLSearchParams(query ?? '').get('after')
    if (after !== null) {
      if (!/^\d{1,15}$/.test(after)) return refuse(response, 400, 'after must be a revision')
      await this.#wait(Number(after), response)
    }
    if (response.destroyed) return
    const body = this.#options.report.json()
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    response.end(body)
  }

  #retire({ method, headers }: IncomingMessage, response: ServerResponse): void {
    const body = (headers['content-length'] ?? '0') !== '0' || headers['transfer-encoding'] !== undefined
    if (method !== 'POST') refuse(response, 405, 'only POST is served here')
    else if (body) refuse(response, 413, 'send no body')
    else {
      this.#options.onRetire?.()
      response.writeHead(202, { 'content-length': 0 }).end()
    }
  }

  async #wait(after: number, response: ServerResponse): Promise<void> {
    const { report, pollMs } = this.#options
    if (after > report.revision) return
    const poll = new AbortController()
    const timer = setTimeout(() => poll.abort(), pollMs ?? 25_000)
    response.once('close', () => poll.abort())
    this.#polls.add(poll)
    await report.changed(after, poll.signal)
    this.#polls.delete(poll)
    clearTimeout(timer)
  }

  #authorized(header: string | undefined): boolean {
    const match = /^Bearer +(\S+) *$/i.exec(header ?? '')
    // Digests have one length, so the comparison tells nothing of the token's.
    return this.#token !== undefined && match !== null && timingSafeEqual(digest(match[1]!), this.#token)
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function refuse(response: ServerResponse, status: number, message: string): void {
  // A body that we did not read must not be taken for the next request.
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' })
  response.end(JSON.stringify({ error: message }))
}
