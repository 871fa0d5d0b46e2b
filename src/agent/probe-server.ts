import { createServer, type Server, type ServerResponse } from 'node:http'
import { messageOf } from '../core/errors.ts'
import type { Metrics } from './exposition.ts'

/** Undefined when all is well; else what is not, for a person. */
export type Check = () => string | undefined

export interface ProbeServerOptions {
  host: string
  /** 0 takes any free port. */
  port: number
  /** What is not given is not served. */
  live?: Check
  ready?: Check
  registry?: Metrics
}

/** Plain HTTP for the kubelet and for Prometheus: `/livez`, `/readyz`, `/metrics`. Nothing secret stands there. */
export class ProbeServer {
  readonly #options: ProbeServerOptions
  readonly #server: Server

  constructor(options: ProbeServerOptions) {
    this.#options = options
    this.#server = createServer({ maxHeaderSize: 8192 }, (request, response) => {
      response.on('error', () => {})
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        return send(response, 405, 'only GET is served here\n')
      }
      void this.#answer((request.url ?? '/').split('?', 1)[0]!, response)
    })
    this.#server.maxConnections = 64
    this.#server.headersTimeout = 10_000
    this.#server.requestTimeout = 10_000
    this.#server.on('clientError', (_error, socket) => socket.destroy())
  }

  get port(): number | undefined {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : undefined
  }

  listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host: this.#options.host, port: this.#options.port }, () => {
        this.#server.off('error', reject)
        this.#server.on('error', () => {})
        resolve()
      })
    })
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }

  async #answer(path: string, response: ServerResponse): Promise<void> {
    const { live, ready, registry } = this.#options
    if (path === '/livez' && live !== undefined) return check(response, live())
    if (path === '/readyz' && ready !== undefined) return check(response, ready())
    if (path !== '/metrics' || registry === undefined) {
      const served = { '/livez': live, '/readyz': ready, '/metrics': registry }
      const paths = Object.entries(served).flatMap(([name, what]) => (what === undefined ? [] : [name]))
      return send(response, 404, `here is only ${paths.join(', ')}\n`)
    }
    try {
      const text = await registry.metrics()
      send(response, 200, text, registry.contentType)
    } catch (error) {
      send(response, 500, `${messageOf(error)}\n`)
    }
  }
}

function check(response: ServerResponse, problem: string | undefined): void {
  send(response, problem === undefined ? 200 : 503, `${problem ?? 'ok'}\n`)
}

function send(
  response: ServerResponse,
  status: number,
  text: string,
  type = 'text/plain; charset=utf-8',
): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) })
  response.end(text)
}
