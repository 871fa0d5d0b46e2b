import { connect, type NetConnectOpts, type Socket } from 'node:net'
import { codeOf, messageOf, PosternError } from '../core/errors.ts'
import { Tap } from './tap.ts'

/**
 * Makes the connection that a client's connection is joined to. The client is paused and unread; a dialer may look at
 * its addresses. The socket must have been made with `allowHalfOpen: true`. Rejects when there is no way through, and
 * soon when the signal is aborted, because the listener is closed. The socket is for `splice`: it may have a tap, and
 * then it emits no 'data'.
 */
export type Dial = (client: Socket, signal: AbortSignal) => Promise<Socket>

export interface Endpoint {
  host: string
  port: number
}

/** Where a stream socket can be: a TCP endpoint or the path of a unix socket. */
export type SocketAddress = Endpoint | { path: string }

export interface ConnectOptions {
  /** Milliseconds until the attempt is given up. */
  timeoutMs: number
  signal?: AbortSignal
  /** For `splice` only: read by a {@link Tap}, so it emits no 'data'. Default false. */
  tapped?: boolean
}

/** Finds out after minutes, not hours, that a peer has vanished or has closed for good after a half-close. */
export const KEEP_ALIVE_MS = 60_000

/**
 * One connection, half-open capable, with TCP_NODELAY and keep-alive. Rejects with the system's error, with
 * `ETIMEDOUT` at the limit, or with the signal's reason.
 */
export function connectSocket(address: SocketAddress, options: ConnectOptions): Promise<Socket> {
  const { timeoutMs, signal } = options
  if (signal?.aborted) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    const tap = options.tapped ? new Tap() : undefined
    const socket = connect({ ...connectOptions(address), ...(tap && { onread: tap.onread }) })
    tap?.fit(socket)
    const timer = setTimeout(() => fail(timedOut(timeoutMs)), timeoutMs)
    const onAbort = () => fail(signal?.reason)
    const settle = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    const fail = (error: unknown) => {
      settle()
      socket.destroy()
      reject(error)
    }
    signal?.addEventListener('abort', onAbort)
    // The listener stays: an error between this connection and its use must not end the process.
    socket.on('error', fail)
    socket.once('connect', () => {
      settle()
      // With a tap nothing may be read before there is somewhere to put it.
      if (tap) socket.pause()
      resolve(socket)
    })
  })
}

function connectOptions(address: SocketAddress): NetConnectOpts {
  if ('path' in address) return { path: address.path, allowHalfOpen: true }
  const { host, port } = address
  return {
    host,
    port,
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
  }
}

function timedOut(timeoutMs: number): Error {
  return Object.assign(new Error(`no answer within ${timeoutMs} ms`), { code: 'ETIMEDOUT' })
}

/** `host:port`, `[v6]:port` or the path. */
export function formatAddress(address: SocketAddress): string {
  if ('path' in address) return address.path
  return address.host.includes(':') ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`
}

/**
 * Dials TCP endpoints in turn, each connection starting one further, until one answers.
 *
 * @param endpoints asked anew for every connection, so it may follow a Service as its pods come and go
 * @param options.timeoutMs for one endpoint (default 10000); all attempts together get three times as long
 * @returns a dialer that rejects with PosternError `DialFailed`, which names the endpoints and what each of them said
 */
export function dialTcp(endpoints: () => readonly Endpoint[], options: { timeoutMs?: number } = {}): Dial {
  const { timeoutMs = 10_000 } = options
  let offset = 0
  return async (_client, signal) => {
    const list = endpoints()
    if (list.length === 0) {
      throw new PosternError(
        'DialFailed',
        'there is no endpoint to connect to: check that the backend has ready pods',
      )
    }
    const start = offset
    offset = (offset + 1) % list.length
    const deadline = performance.now() + 3 * timeoutMs
    const failures: { endpoint: Endpoint; error: unknown }[] = []
    for (let i = 0; i < list.length; i++) {
      const endpoint = list[(start + i) % list.length]!
      const left = Math.min(timeoutMs, deadline - performance.now())
      if (left <= 0) break
      try {
        return await connectSocket(endpoint, { timeoutMs: left, signal, tapped: true })
      } catch (error) {
        if (signal.aborted) throw error
        failures.push({ endpoint, error })
      }
    }
    throw dialFailed(failures)
  }
}

/**
 * Dials a unix socket.
 *
 * @returns a dialer that rejects with PosternError `DialFailed`
 */
export function dialUnix(path: string, options: { timeoutMs?: number } = {}): Dial {
  const { timeoutMs = 10_000 } = options
  return async (_client, signal) => {
    try {
      return await connectSocket({ path }, { timeoutMs, signal, tapped: true })
    } catch (error) {
      if (signal.aborted) throw error
      const hint = 'check that the process that listens there is running'
      throw new PosternError('DialFailed', `could not connect to ${path} (${said(error)}): ${hint}`, {
        cause: error,
      })
    }
  }
}

/** An error lists this many endpoints; a Service may have a thousand. */
const LISTED = 8

function dialFailed(failures: { endpoint: Endpoint; error: unknown }[]): PosternError {
  const shown = failures.slice(0, LISTED).map((f) => `${formatAddress(f.endpoint)} (${said(f.error)})`)
  if (failures.length > LISTED) shown.push(`${failures.length - LISTED} more`)
  const hint = 'check that the backend listens there and that no network policy is in the way'
  const message = `could not connect to ${shown.join(', ')}: ${hint}`
  return new PosternError('DialFailed', message, { cause: failures[0]?.error })
}

function said(error: unknown): string {
  return codeOf(error) ?? messageOf(error)
}
