import type { Socket } from 'node:net'
import { messageOf } from '../../core/errors.ts'
import { socks5Connect } from '../../relay/socks5.ts'
import type { ProxyPlan } from '../contract.ts'
import { type ProbeAttempt, ProbeFailure, type ProbeTarget } from './probes.ts'
import type { TorPaths } from './torrc.ts'

/** What a probe does at a target. */

export interface VisitOptions {
  /** For tor to come through; default 60 s. */
  timeoutMs?: number
  /**
   * How long the stream is looked at after that: whoever serves the onion takes a visitor in before it knows whether its
   * backend answers, and hangs up when it does not. Default 0.
   */
  holdMs?: number
  /** For the head of a page to come; default 30 s. */
  pageMs?: number
}

const HEAD_LIMIT = 8 * 1024

/** Goes through tor to the target, and asks for its page where it has one. */
export function visits(
  paths: Pick<TorPaths, 'socks' | 'socksExtended'>,
  { timeoutMs = 60_000, holdMs = 0, pageMs = 30_000 }: VisitOptions = {},
): ProbeAttempt<ProbeTarget> {
  return async ({ onion: host, port, http }, { username, extended, signal }) => {
    const began = performance.now()
    const proxy = { path: extended ? paths.socksExtended : paths.socks }
    const socket = await socks5Connect({ proxy, host, port, username, timeoutMs, signal })
    const latencyMs = Math.round(performance.now() - began)
    try {
      if (http !== undefined) {
        await page(socket, { host, path: http.path, timeoutMs: pageMs, signal })
        return { latencyMs: Math.round(performance.now() - began) }
      }
      if (holdMs > 0) await staysOpen(socket, holdMs, signal)
      return { latencyMs }
    } finally {
      socket.on('error', () => {}).destroy()
    }
  }
}

/** What is looked at of proxies, each by the name `PROXY/TARGET`. */
export function targetsOf(proxies: readonly ProxyPlan[]): Map<string, ProbeTarget> {
  return new Map(
    proxies.flatMap(({ name, targets }) =>
      targets.map(({ name: target, onion, port }) => [`${name}/${target}`, { onion, port }] as const),
    ),
  )
}

/** @throws ProbeFailure BackendClosed when the stream ends before it has brought a byte */
export function staysOpen(socket: Socket, milliseconds: number, signal: AbortSignal): Promise<void> {
  return read(socket, milliseconds, signal, {
    chunk: () => true,
    late: () => undefined,
  })
}

/** @throws ProbeFailure BackendClosed, PageFailed */
export function page(
  socket: Socket,
  options: { host: string; path: string; timeoutMs: number; signal: AbortSignal },
): Promise<void> {
  const { host, path, timeoutMs, signal } = options
  let head = ''
  const done = read(socket, timeoutMs, signal, {
    chunk: (chunk) => {
      head += chunk.toString('latin1')
      const line = /^([^\r\n]*)\r?\n/.exec(head)?.[1]
      if (line === undefined && head.length < HEAD_LIMIT) return false
      const status = /^HTTP\/1\.[01] ([1-5]\d\d)( |$)/.exec(line ?? '')?.[1]
      if (status === undefined) throw new ProbeFailure('PageFailed', 'what answers is no HTTP/1.1 server')
      if (status >= '500') throw new ProbeFailure('PageFailed', `the page ${path} has HTTP status ${status}`)
      return true
    },
    late: () => new ProbeFailure('PageFailed', `the page ${path} did not come within ${timeoutMs / 1000} s`),
  })
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nUser-Agent: postern\r\nAccept: */*\r\nConnection: close\r\n\r\n`,
  )
  return done
}

interface Reader {
  /** Whether it was enough; throws where it is not what it should be. */
  chunk(chunk: Buffer): boolean
  /** When the time is over: the error, if it is one. */
  late(): Error | undefined
}

function read(socket: Socket, milliseconds: number, signal: AbortSignal, reader: Reader): Promise<void> {
  return new Promise((resolve, reject) => {
    let heard = false
    const settle = (error?: unknown): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      socket.off('data', onData).off('end', onEnd).off('close', onEnd).off('error', onError)
      if (error === undefined) resolve()
      else reject(error)
    }
    const ended = (how: string): void =>
      settle(
        heard
          ? new ProbeFailure('PageFailed', `the answer was cut short: ${how}`)
          : new ProbeFailure(
              'BackendClosed',
              `the onion was reached, and then ${how}: its backend cannot be reached, or hung up`,
            ),
      )
    const onData = (chunk: Buffer): void => {
      heard = true
      try {
        if (reader.chunk(chunk)) settle()
      } catch (error) {
        settle(error)
      }
    }
    const onEnd = (): void => ended('the connection ended without a byte')
    const onError = (error: Error): void => ended(`the connection failed (${messageOf(error)})`)
    const onAbort = (): void => settle(signal.reason)
    const timer = setTimeout(() => settle(reader.late()), milliseconds)
    signal.addEventListener('abort', onAbort)
    socket.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', onError)
    if (signal.aborted) return onAbort()
    socket.resume()
  })
}
