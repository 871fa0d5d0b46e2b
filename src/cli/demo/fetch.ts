import { request } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { messageOf, PosternError } from '../../core/errors.ts'
import { socks5Connect } from '../../relay/socks5.ts'

export interface Page {
  status: number
  body: Buffer
}

export interface FetchOptions {
  /** tor's SocksPort on 127.0.0.1. */
  socksPort: number
  host: string
  /** Milliseconds for all tries together. */
  limit: number
  signal: AbortSignal
  /** Told why a try failed. */
  onRetry?: (reason: string) => void
}

const MAX_BODY = 1024 * 1024
const FIRST_TRY = 10_000
/** In a network that is seconds old, hidden service directories may still differ between the two sides. */
const BETWEEN = 300

/**
 * The front page of an onion, once it can be reached: each try on a circuit of its own.
 *
 * @throws PosternError `FetchFailed` with what the last try said, or the signal's reason
 */
export async function fetchEventually(options: FetchOptions): Promise<Page> {
  const { limit, signal, onRetry } = options
  const deadline = performance.now() + limit
  for (let attempt = 1; ; attempt++) {
    const left = deadline - performance.now()
    try {
      // A circuit that hangs must not cost the whole limit.
      return await fetchOnce(options, `visit-${attempt}`, Math.min(left, FIRST_TRY * attempt))
    } catch (error) {
      signal.throwIfAborted()
      if (deadline - performance.now() <= BETWEEN) {
        throw new PosternError('FetchFailed', `no page from ${options.host}: ${messageOf(error)}`, {
          cause: error,
        })
      }
      onRetry?.(messageOf(error))
    }
    await pause(BETWEEN, undefined, { signal })
  }
}

async function fetchOnce(options: FetchOptions, username: string, timeout: number): Promise<Page> {
  const limit = AbortSignal.any([options.signal, AbortSignal.timeout(timeout)])
  const socket = await socks5Connect({
    proxy: { host: '127.0.0.1', port: options.socksPort },
    host: options.host,
    port: 80,
    username,
    signal: limit,
  })
  try {
    return await get(socket, options.host, limit)
  } finally {
    socket.destroy()
  }
}

function get(socket: Socket, host: string, signal: AbortSignal): Promise<Page> {
  return new Promise((resolve, reject) => {
    const call = request({ host, path: '/', createConnection: () => socket, signal }, (response) => {
      const chunks: Buffer[] = []
      let size = 0
      response.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size > MAX_BODY) call.destroy(new PosternError('FetchFailed', 'the page is too large'))
        else chunks.push(chunk)
      })
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks) }))
    })
    call.on('error', reject)
    call.end()
    // It comes paused; the server speaks second, so nothing of the answer can be there yet.
    socket.resume()
  })
}
