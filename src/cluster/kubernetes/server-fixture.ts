import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { ConnectionSettings } from './settings.ts'

/** A request as the played server got it. */
export interface Asked {
  method: string
  path: string
  headers: IncomingMessage['headers']
  body: string
  /** The connection that it came on. */
  port: number
}

export type Reply = (response: ServerResponse, asked: Asked) => unknown

/** Plays an API server's part: a test says what each request is answered with, down to the chunks. */
export class PlayedServer {
  readonly asked: Asked[] = []
  readonly #server: Server
  /** Replaced in the course of a test. */
  reply: Reply

  static async start(reply: Reply, tls?: ServerOptions): Promise<PlayedServer> {
    const played: PlayedServer = new PlayedServer(reply, tls)
    played.#server.listen(0, '127.0.0.1')
    await once(played.#server, 'listening')
    return played
  }

  constructor(reply: Reply, tls: ServerOptions | undefined) {
    this.reply = reply
    const listener: RequestListener = (request, response) => void this.#answer(request, response)
    this.#server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Settings that reach it without TLS. */
  settings(user: ConnectionSettings['user'] = {}): ConnectionSettings {
    const server = `http://127.0.0.1:${this.port}`
    return { source: 'a test', server, namespace: 'default', tls: { insecure: false }, user }
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method = '', url: path = '', headers, socket } = request
    const asked = {
      method,
      path,
      headers,
      body: Buffer.concat(chunks).toString('utf8'),
      port: socket.remotePort ?? 0,
    }
    this.asked.push(asked)
    await this.reply(response, asked)
  }
}

export function json(
  response: ServerResponse,
  document: unknown,
  status = 200,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(document))
}

/** A `Status` as the API server refuses with. */
export function refusal(
  code: number,
  reason: string,
  message: string,
  details?: object,
): Record<string, unknown> {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    code,
    ...(details === undefined ? {} : { details }),
  }
}
