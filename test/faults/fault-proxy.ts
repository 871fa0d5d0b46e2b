import { readFile } from 'node:fs/promises'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { Agent, createServer, request, type Server } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubernetesAccess } from '../../testbed/kubernetes/access.ts'
import { makeAuthority } from '../../testbed/kubernetes/certificates.ts'
import { writeKubeconfig } from '../../testbed/kubernetes/pki.ts'
import { ProxiedWatch, type Tear } from './proxied-watch.ts'
import { type ApiCall, callOf, describeCall, type SeenCall, WRITES } from './requests.ts'

/** An answer in place of the API server's own. */
export interface Storm {
  status: 401 | 429 | 500 | 503
  /** Seconds, for the header. */
  retryAfter?: number
  /** Of the requests, spread evenly; default all. */
  share?: number
}

export interface ProxyOptions {
  /** Names the kubeconfig; each proxy of a test bed has its own. */
  name: string
  /** What requests are made with, PEM; default: the admin's. */
  user?: { certificate: string; key: string }
}

/**
 * An HTTPS proxy (HTTP/1.1) in front of an API server, with faults that are switched while it runs, and a record of all that
 * went through. It speaks to the API server as one user, whoever asks.
 */
export class FaultProxy implements AsyncDisposable {
  /** Path. */
  readonly kubeconfig: string
  /** In the order of their begin. */
  calls: SeenCall[] = []
  /** Milliseconds that every request waits before it goes on. */
  latency = 0
  storm: Storm | undefined
  /** A page of a proxy that asks for a log-in, in place of every answer. */
  html = false
  /** What is never answered; watches that run already go silent with `silenceWatches`. */
  blackHole: 'watches' | 'everything' | undefined

  readonly #server: Server
  readonly #port: number
  readonly #target: URL
  readonly #agent: Agent
  readonly #sockets = new Set<Socket>()
  readonly #watches = new Set<ProxiedWatch>()
  /** Requests that wait in the black hole. */
  readonly #held = new Set<ServerResponse>()
  #stormed = 0

  static async start(access: KubernetesAccess, options: ProxyOptions): Promise<FaultProxy> {
    const file = (path: string): Promise<string> => readFile(path, 'utf8')
    const { certificate, key } = options.user ?? {
      certificate: await file(access.adminCertificate),
      key: await file(access.adminKey),
    }
    const authority = makeAuthority({ commonName: `proxy ${options.name}` })
    const own = authority.issue({ commonName: 'proxy', usage: 'server', names: ['127.0.0.1'] })
    const agent = new Agent({ ca: await file(access.ca), cert: certificate, key, keepAlive: true })
    const listener: { handle?: RequestListener } = {}
    const server = createServer(
      { cert: own.certificate, key: own.key, keepAliveTimeout: 120_000 },
      (...call) => listener.handle?.(...call),
    )
    await listening(server, 0)
    const kubeconfig = join(access.state, `proxy-${options.name}.kubeconfig`)
    const { port } = server.address() as AddressInfo
    await writeKubeconfig(kubeconfig, {
      url: `https://127.0.0.1:${port}`,
      ca: authority.pair.certificate,
      user: { name: 'whoever', token: 'replaced-by-the-proxy' },
    })
    const proxy = new FaultProxy(server, new URL(access.url), agent, kubeconfig)
    listener.handle = (incoming, response) => void proxy.#handle(incoming, response)
    return proxy
  }

  private constructor(server: Server, target: URL, agent: Agent, kubeconfig: string) {
    this.#server = server
    this.#port = (server.address() as AddressInfo).port
    this.#target = target
    this.#agent = agent
    this.kubeconfig = kubeconfig
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
  }

  /** Ends whatever it does to others. */
  async calm(): Promise<void> {
    this.latency = 0
    this.storm = undefined
    this.html = false
    this.blackHole = undefined
    this.cutHeld()
    if (!this.#server.listening) await this.acceptConnections()
  }

  /** Tears the watches that run (of a kind); `mid-event` and `cut-event` wait for its next event. Returns how many. */
  tear(how: Tear, plural?: string): number {
    const watches = this.#running(plural)
    for (const watch of watches) watch.tear(how)
    return watches.length
  }

  /** The watches that run stay open, and nothing comes any more. Returns how many. */
  silenceWatches(): number {
    for (const watch of this.#watches) watch.silence()
    return this.#watches.size
  }

  /** Cuts what waits in the black hole. Returns how many requests. */
  cutHeld(): number {
    const held = [...this.#held]
    for (const response of held) response.socket?.destroy()
    return held.length
  }

  /** The next event of the watches on a kind is so many bytes longer. Returns how many there are. */
  pad(plural: string, bytes: number): number {
    const watches = this.#running(plural)
    for (const watch of watches) watch.pad(bytes)
    return watches.length
  }

  /** Cuts all connections and refuses new ones, as a machine where nothing listens. */
  async refuseConnections(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async acceptConnections(): Promise<void> {
    await listening(this.#server, this.#port)
  }

  /** Writes that were asked for, events aside, and what else is to be left out. */
  writes(...without: string[]): SeenCall[] {
    return this.calls.filter(
      ({ verb, plural }) => WRITES.has(verb) && plural !== 'events' && !without.includes(plural),
    )
  }

  /** How often each verb was asked for, by kind: `apply configmaps` → 3. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const { verb, plural } of this.calls) {
      const name = `${verb} ${plural}`
      counts[name] = (counts[name] ?? 0) + 1
    }
    return counts
  }

  /** The requests that were answered with 403, each once. */
  forbidden(): string[] {
    return [...new Set(this.calls.filter(({ status }) => status === 403).map(describeCall))]
  }

  /** Forgets what went through until now. */
  forget(): void {
    this.calls = []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.listening) await this.refuseConnections()
    this.#agent.destroy()
  }

  #running(plural: string | undefined): ProxiedWatch[] {
    return [...this.#watches].filter((watch) => plural === undefined || watch.plural === plural)
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const call: SeenCall = { ...callOf(incoming), at: performance.now(), status: 0 }
    this.calls.push(call)
    response.on('error', () => {})
    incoming.on('error', () => {})
    if (this.latency > 0) await sleep(this.latency)
    if (this.blackHole === 'everything' || (this.blackHole === 'watches' && call.verb === 'watch')) {
      this.#held.add(response)
      response.on('close', () => this.#held.delete(response))
      return
    }
    if (this.html) {
      call.status = 200
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html><body>Please log in</body></html>')
    } else if (this.storm !== undefined && this.#isStormed(this.storm)) {
      call.status = this.storm.status
      refuse(response, this.storm)
    } else this.#forward(call, incoming, response)
  }

  #isStormed({ share = 1 }: Storm): boolean {
    this.#stormed++
    return Math.floor(this.#stormed * share) > Math.floor((this.#stormed - 1) * share)
  }

  #forward(call: SeenCall, incoming: IncomingMessage, response: ServerResponse): void {
    const { authorization: _, host: __, connection: ___, ...headers } = incoming.headers
    const sent = request(
      new URL(incoming.url ?? '/', this.#target),
      { method: incoming.method ?? 'GET', headers, agent: this.#agent },
      (answer) => {
        call.status = answer.statusCode ?? 0
        response.writeHead(call.status, answer.headers)
        if (call.verb === 'watch' && call.status === 200) this.#watch(call, answer, response)
        else answer.on('error', () => response.socket?.destroy()).pipe(response)
      },
    )
    // The API server is away: so is whoever stands in front of it.
    sent.on('error', () => response.socket?.destroy())
    response.on('close', () => sent.destroy())
    incoming.pipe(sent)
  }

  #watch({ plural }: ApiCall, answer: IncomingMessage, response: ServerResponse): void {
    const watch = new ProxiedWatch(plural, response, answer)
    this.#watches.add(watch)
    response.on('close', () => this.#watches.delete(watch))
    response.flushHeaders()
  }
}

/** As the API server says it. */
function refuse(response: ServerResponse, { status, retryAfter }: Storm): void {
  const reasons = {
    401: 'Unauthorized',
    429: 'TooManyRequests',
    500: 'InternalError',
    503: 'ServiceUnavailable',
  }
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    reason: reasons[status],
    message: 'a storm',
    code: status,
  }
  response
    .writeHead(status, {
      'content-type': 'application/json',
      ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
    })
    .end(JSON.stringify(body))
}

function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve()
    })
  })
}
