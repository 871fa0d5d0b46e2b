import { reasonOfReply, type SocksReason } from './socks-error.ts'

/** Where a handshake stands, as the client sees it. A value: it is never changed, only followed by another one. */
export interface Socks5State {
  readonly stage: 'method' | 'auth' | 'reply'
  /** Whether we offered user name and password (and nothing else). */
  readonly auth: boolean
  /** Bytes that came and are not a whole message yet: never more than 261. */
  readonly pending: Uint8Array
}

export type Socks5Step =
  /** Not enough yet. */
  | { kind: 'more'; state: Socks5State }
  /** The proxy waits for this message; then call `advance` again, with the next bytes or none. */
  | { kind: 'send'; message: 'auth' | 'request'; state: Socks5State }
  /** Connected. `rest` is what the far side has sent already: the stream begins with it. */
  | { kind: 'done'; bound: { host: string; port: number }; rest: Uint8Array }
  | { kind: 'failed'; reason: SocksReason; reply: number; detail: string }

const NONE = new Uint8Array(0)
const VERSION = 5
const NO_AUTH = 0x00
const USER_PASS = 0x02

/** The state right after our greeting has been sent. */
export function socks5Start(auth: boolean): Socks5State {
  return { stage: 'method', auth, pending: NONE }
}

/**
 * What a SOCKS5 proxy's bytes mean, in whatever pieces they come (RFC 1928 sections 3 and 6, RFC 1929). Pure. Every
 * message has a length of at most 262 bytes that shows early, so nothing is gathered beyond that.
 */
export function advance(state: Socks5State, chunk: Uint8Array): Socks5Step {
  const bytes = concat(state.pending, chunk)
  switch (state.stage) {
    case 'method':
      return onMethod(state, bytes)
    case 'auth':
      return onAuth(state, bytes)
    case 'reply':
      return onReply(state, bytes)
  }
}

function onMethod(state: Socks5State, bytes: Uint8Array): Socks5Step {
  if (bytes.length > 0 && bytes[0] !== VERSION) return malformed(`version ${bytes[0]}`)
  if (bytes.length < 2) return { kind: 'more', state: { ...state, pending: bytes } }
  const wanted = state.auth ? USER_PASS : NO_AUTH
  const method = bytes[1]
  if (method === 0xff)
    return { kind: 'failed', reason: 'AuthRejected', reply: -1, detail: 'no method accepted' }
  if (method !== wanted) return malformed(`method ${method} was not offered`)
  const pending = bytes.subarray(2)
  return state.auth
    ? { kind: 'send', message: 'auth', state: { ...state, stage: 'auth', pending } }
    : { kind: 'send', message: 'request', state: { ...state, stage: 'reply', pending } }
}

function onAuth(state: Socks5State, bytes: Uint8Array): Socks5Step {
  if (bytes.length > 0 && bytes[0] !== 1) return malformed(`sub-negotiation version ${bytes[0]}`)
  if (bytes.length < 2) return { kind: 'more', state: { ...state, pending: bytes } }
  if (bytes[1] !== 0)
    return { kind: 'failed', reason: 'AuthRejected', reply: -1, detail: `status ${bytes[1]}` }
  return { kind: 'send', message: 'request', state: { ...state, stage: 'reply', pending: bytes.subarray(2) } }
}

function onReply(state: Socks5State, bytes: Uint8Array): Socks5Step {
  if (bytes.length > 0 && bytes[0] !== VERSION) return malformed(`version ${bytes[0]}`)
  // A refusal is clear from its second byte on; proxies exist that send no more than that.
  const reply = bytes[1]
  if (reply !== undefined && reply !== 0) {
    const detail = `reply 0x${reply.toString(16).padStart(2, '0')}`
    return { kind: 'failed', reason: reasonOfReply(reply), reply, detail }
  }
  const type = bytes[3]
  if (type === undefined) return { kind: 'more', state: { ...state, pending: bytes } }
  const address = addressRange(type, bytes[4])
  if (address === undefined) return malformed(`address type ${type}`)
  const end = address.start + address.length
  if (bytes.length < 5 || bytes.length < end + 2) return { kind: 'more', state: { ...state, pending: bytes } }
  const host = formatHost(type, bytes.subarray(address.start, end))
  const port = bytes[end]! * 256 + bytes[end + 1]!
  return { kind: 'done', bound: { host, port }, rest: bytes.subarray(end + 2) }
}

function addressRange(
  type: number,
  first: number | undefined,
): { start: number; length: number } | undefined {
  if (type === 1) return { start: 4, length: 4 }
  if (type === 3) return { start: 5, length: first ?? 0 }
  // What tor answers on a unix socket.
  if (type === 4) return { start: 4, length: 16 }
  return undefined
}

function formatHost(type: number, bytes: Uint8Array): string {
  if (type === 1) return bytes.join('.')
  if (type === 3) return Buffer.from(bytes).toString('latin1')
  const groups: string[] = []
  for (let i = 0; i < 16; i += 2) groups.push((bytes[i]! * 256 + bytes[i + 1]!).toString(16))
  return groups.join(':')
}

function malformed(detail: string): Socks5Step {
  return { kind: 'failed', reason: 'ProtocolError', reply: -1, detail }
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  if (a.length === 0) return b
  if (b.length === 0) return a
  const both = new Uint8Array(a.length + b.length)
  both.set(a)
  both.set(b, a.length)
  return both
}
