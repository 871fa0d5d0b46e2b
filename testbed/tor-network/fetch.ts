import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf, PosternError } from '../../src/core/errors.ts'

export interface SocksFetch {
  /** A SOCKS5 port on 127.0.0.1. */
  socksPort: number
  /** The name that the proxy resolves, such as an onion address. */
  host: string
  port: number
  path?: string
  /** Streams of different names never share a circuit. Default: a fresh one for each call. */
  username?: string
  /** For everything together; default 30 s. */
  timeoutMs?: number
}

export interface SocksReply {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

const maxBody = 16 * 1024 * 1024

/**
 * GETs `http://host:port/path` through a SOCKS5 proxy.
 *
 * @throws PosternError `SocksRefused` with the SOCKS reply code (RFC 1928; tor's own are 0xF0 to 0xF7), `FetchTimeout`,
 *   `FetchFailed`.
 */
export async function fetchThroughSocks(options: SocksFetch): Promise<SocksReply> {
  const { socksPort, host, port, path = '/', timeoutMs = 30_000 } = options
  const socket = connect(socksPort, '127.0.0.1')
  // Errors reach the caller through what is awaited; this one only keeps a late one from ending the process.
  socket.on('error', () => {})
  const signal = AbortSignal.timeout(timeoutMs)
  const onTimeout = () => socket.destroy(signal.reason)
  signal.addEventListener('abort', onTimeout)
  try {
    await handshake(socket, host, port, options.username ?? randomBytes(8).toString('hex'))
    const get = request({
      createConnection: () => socket,
      host,
      port,
      path,
      headers: { connection: 'close' },
    })
    get.end()
    const [reply] = (await once(get, 'response')) as [IncomingMessage]
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of reply as AsyncIterable<Buffer>) {
      if ((size += chunk.length) > maxBody)
        throw new PosternError('FetchFailed', `more than ${maxBody} bytes`)
      chunks.push(chunk)
    }
    return { status: reply.statusCode ?? 0, headers: reply.headers, body: Buffer.concat(chunks).toString() }
  } catch (error) {
    if (error instanceof PosternError) throw error
    const what = `GET http://${host}:${port}${path} through SOCKS on 127.0.0.1:${socksPort}`
    if (signal.aborted) throw new PosternError('FetchTimeout', `${what}: no answer within ${timeoutMs} ms`)
    throw new PosternError('FetchFailed', `${what}: ${messageOf(error)}`, { cause: error })
  } finally {
    signal.removeEventListener('abort', onTimeout)
    socket.destroy()
  }
}

/**
 * Repeats `fetchThroughSocks`, each time on fresh circuits, until `accept` likes the reply (default: status 200). In the
 * first seconds after an onion's publication a client may look for its descriptor in the wrong places (0xF0).
 *
 * @throws PosternError `FetchTimeout` with the last error or reply, after `limitMs` (default 60 s).
 */
export async function fetchEventually(
  options: Omit<SocksFetch, 'username'> & {
    limitMs?: number
    accept?: (reply: SocksReply) => boolean
    signal?: AbortSignal
  },
): Promise<SocksReply> {
  const { limitMs = 60_000, accept = (reply) => reply.status === 200, signal } = options
  const limit = Date.now() + limitMs
  let tries = 0
  let last = 'nothing'
  while (Date.now() < limit) {
    signal?.throwIfAborted()
    tries++
    try {
      const timeoutMs = Math.max(1, Math.min(options.timeoutMs ?? 15_000, limit - Date.now()))
      const reply = await fetchThroughSocks({ ...options, timeoutMs })
      if (accept(reply)) return reply
      last = `status ${reply.status} with ${JSON.stringify(reply.body.slice(0, 200))}`
    } catch (error) {
      last = messageOf(error)
    }
    await sleep(500, undefined, signal === undefined ? {} : { signal })
  }
  throw new PosternError(
    'FetchTimeout',
    `not reached within ${limitMs} ms and ${tries} tries; the last one: ${last}`,
  )
}

/** SOCKS5 CONNECT (RFC 1928) with user name and password (RFC 1929), by which tor keeps streams apart. */
async function handshake(socket: Socket, host: string, port: number, username: string): Promise<void> {
  await once(socket, 'connect')
  socket.write(Uint8Array.of(5, 1, 2))
  const [version, method] = await readExactly(socket, 2)
  if (version !== 5 || method !== 2) throw new PosternError('SocksRefused', 'the proxy wants another sign-in')
  socket.write(Buffer.concat([Uint8Array.of(1), field(username), field('x')]))
  const [, denied] = await readExactly(socket, 2)
  if (denied !== 0) throw new PosternError('SocksRefused', 'the proxy refused user name and password')
  socket.write(Buffer.concat([Uint8Array.of(5, 1, 0, 3), field(host), Uint8Array.of(port >> 8, port & 255)]))
  const head = await readExactly(socket, 4)
  const code = head[1]!
  if (code !== 0) {
    const hex = code.toString(16).toUpperCase().padStart(2, '0')
    throw new PosternError(
      'SocksRefused',
      `${host}:${port}: SOCKS reply 0x${hex} (${replies[code] ?? 'unknown'})`,
    )
  }
  // The bound address: IPv4, a name, or IPv6, which tor uses on unix sockets.
  const length = head[3] === 1 ? 4 : head[3] === 4 ? 16 : (await readExactly(socket, 1))[0]!
  await readExactly(socket, length + 2)
}

const replies: Record<number, string> = {
  1: 'general failure',
  2: 'not allowed',
  3: 'network unreachable',
  4: 'host unreachable',
  5: 'connection refused',
  6: 'TTL expired',
  7: 'command not supported',
  8: 'address type not supported',
  240: 'onion descriptor not found',
  241: 'onion descriptor invalid',
  242: 'introduction failed',
  243: 'rendezvous failed',
  244: 'missing client authorization',
  245: 'wrong client authorization',
  246: 'invalid onion address',
  247: 'introduction timed out',
}

function field(text: string): Buffer {
  const bytes = Buffer.from(text)
  if (bytes.length === 0 || bytes.length > 255)
    throw new PosternError('FetchFailed', `not 1 to 255 bytes: ${text}`)
  return Buffer.concat([Uint8Array.of(bytes.length), bytes])
}

async function readExactly(socket: Socket, size: number): Promise<Buffer> {
  for (;;) {
    const chunk: Buffer | null = socket.read(size)
    if (chunk?.length === size) return chunk
    if (socket.readableEnded || socket.destroyed || chunk !== null)
      throw new Error('the proxy closed the connection')
    await new Promise<void>((resolve, reject) => {
      const done = () => {
        for (const event of ['readable', 'end', 'close']) socket.off(event, done)
        socket.off('error', failed)
        resolve()
      }
      const failed = (error: Error) => {
        done()
        reject(error)
      }
      for (const event of ['readable', 'end', 'close']) socket.on(event, done)
      socket.on('error', failed)
    })
  }
}
