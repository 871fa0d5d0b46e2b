import type { Socket } from 'node:net'
import { codeOf, messageOf, PosternError } from '../core/errors.ts'
import { connectSocket, type Dial, formatAddress, type SocketAddress } from './dial.ts'
import { SocksError } from './socks-error.ts'
import { advance, socks5Start } from './socks5-reply.ts'

export interface Socks5Options {
  proxy: SocketAddress
  /** Name or address of the target; the proxy resolves it. At most 255 bytes. */
  host: string
  port: number
  /**
   * 1 to 255 bytes. When given, user name and password (RFC 1929) are the only way of signing in that is offered. tor
   * keeps streams with different ones on different circuits (IsolateSOCKSAuth).
   */
  username?: string
  /** 1 to 255 bytes, only together with a user name. Default `0`, since the RFC knows no empty one. */
  password?: string
  /** Milliseconds for all of it. Default 130000: tor itself gives up after two minutes (SocksTimeout). */
  timeoutMs?: number
}

export interface Socks5ConnectOptions extends Socks5Options {
  signal?: AbortSignal
}

/**
 * A dialer through a SOCKS5 proxy.
 *
 * @throws PosternError `SocksRequestInvalid` at once when the options can't be put into a request
 */
export function dialSocks5(options: Socks5Options): Dial {
  encode(options)
  return (_client, signal) => socks5Connect({ ...options, signal })
}

/**
 * One connection through a SOCKS5 proxy, at the first byte of its stream and paused: call `resume()`, or `splice` it.
 * Messages are sent one after the other: behind a local socket an optimistic single write would save microseconds of
 * a circuit's seconds, and not every proxy bears it.
 *
 * @throws SocksError (code `SocksFailed`, see its `reason`), PosternError `SocksRequestInvalid`, or the signal's reason
 */
export async function socks5Connect(options: Socks5ConnectOptions): Promise<Socket> {
  const { proxy, signal, timeoutMs = 130_000 } = options
  const messages = encode(options)
  const target = formatAddress({ host: options.host, port: options.port })
  const deadline = performance.now() + timeoutMs
  let socket: Socket
  try {
    socket = await connectSocket(proxy, { timeoutMs, ...(signal === undefined ? {} : { signal }) })
  } catch (error) {
    if (signal?.aborted) throw error
    const detail = `${formatAddress(proxy)}: ${codeOf(error) ?? messageOf(error)}`
    throw new SocksError('ProxyUnreachable', { target, detail, cause: error })
  }
  return handshake(socket, messages, target, Math.max(1, deadline - performance.now()), signal)
}

function handshake(
  socket: Socket,
  messages: Messages,
  target: string,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    let state = socks5Start(messages.auth !== undefined)
    const timer = setTimeout(() => fail(new SocksError('TimedOut', { target })), timeoutMs)
    const onAbort = () => fail(signal?.reason)
    const onEnd = () => fail(new SocksError('ProxyClosed', { target }))
    const onError = (cause: Error) => {
      const detail = codeOf(cause)
      fail(new SocksError('ProxyClosed', { target, cause, ...(detail === undefined ? {} : { detail }) }))
    }
    const settle = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      socket.off('data', onData).off('end', onEnd).off('error', onError).off('close', onEnd)
    }
    const fail = (error: unknown) => {
      settle()
      socket.destroy()
      reject(error)
    }
    const onData = (chunk: Uint8Array) => {
      for (let bytes = chunk; ; bytes = NONE) {
        const step = advance(state, bytes)
        if (step.kind === 'more') {
          state = step.state
          return
        }
        if (step.kind === 'failed') {
          const { reason, reply, detail } = step
          fail(new SocksError(reason, { reply, detail, target }))
          return
        }
        if (step.kind === 'done') {
          settle()
          // In this order and in this turn: the stream must not flow on between, and 'end' must not come first.
          socket.pause()
          if (step.rest.length > 0) socket.unshift(step.rest)
          resolve(socket)
          return
        }
        state = step.state
        socket.write(step.message === 'auth' ? messages.auth! : messages.request)
      }
    }
    if (signal?.aborted) return onAbort()
    signal?.addEventListener('abort', onAbort)
    socket.on('data', onData).on('end', onEnd).on('error', onError).on('close', onEnd)
    socket.write(messages.greeting)
  })
}

interface Messages {
  greeting: Buffer
  auth?: Buffer
  request: Buffer
}

const NONE = new Uint8Array(0)

function encode(options: Socks5Options): Messages {
  const { port, username, password = '0' } = options
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw invalid(`port ${port} is not within 1 to 65535`)
  const host = field('the host name', options.host)
  const request = Buffer.from([5, 1, 0, 3, ...host, port >> 8, port & 0xff])
  if (username === undefined) return { greeting: Buffer.from([5, 1, 0]), request }
  const auth = Buffer.from([1, ...field('the user name', username), ...field('the password', password)])
  return { greeting: Buffer.from([5, 1, 2]), auth, request }
}

/** A length byte and the text. */
function field(name: string, text: string): Buffer {
  const length = Buffer.byteLength(text)
  if (length < 1 || length > 255) throw invalid(`${name} has ${length} bytes; it must have 1 to 255`)
  return Buffer.concat([Buffer.from([length]), Buffer.from(text)])
}

function invalid(message: string): PosternError {
  return new PosternError('SocksRequestInvalid', `cannot ask a SOCKS5 proxy: ${message}`)
}
