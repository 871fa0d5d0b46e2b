import { PosternError } from '../core/errors.ts'

/** Why a SOCKS5 proxy did not connect us. The first ones are the proxy's own word, the last five are about the proxy. */
export type SocksReason =
  | 'GeneralFailure'
  | 'NotAllowed'
  | 'NetworkUnreachable'
  | 'HostUnreachable'
  | 'ConnectionRefused'
  | 'TtlExpired'
  | 'CommandUnsupported'
  | 'AddressTypeUnsupported'
  | 'DescriptorNotFound'
  | 'DescriptorInvalid'
  | 'IntroductionFailed'
  | 'RendezvousFailed'
  | 'ClientAuthMissing'
  | 'ClientAuthWrong'
  | 'AddressInvalid'
  | 'IntroductionTimedOut'
  | 'UnknownReply'
  | 'AuthRejected'
  | 'ProtocolError'
  | 'ProxyClosed'
  | 'ProxyUnreachable'
  | 'TimedOut'

/** Reply codes: RFC 1928 section 6, and tor's `ExtendedErrors` (tor(1), SocksPort). */
const REPLIES: ReadonlyMap<number, SocksReason> = new Map([
  [0x01, 'GeneralFailure'],
  [0x02, 'NotAllowed'],
  [0x03, 'NetworkUnreachable'],
  [0x04, 'HostUnreachable'],
  [0x05, 'ConnectionRefused'],
  [0x06, 'TtlExpired'],
  [0x07, 'CommandUnsupported'],
  [0x08, 'AddressTypeUnsupported'],
  [0xf0, 'DescriptorNotFound'],
  [0xf1, 'DescriptorInvalid'],
  [0xf2, 'IntroductionFailed'],
  [0xf3, 'RendezvousFailed'],
  [0xf4, 'ClientAuthMissing'],
  [0xf5, 'ClientAuthWrong'],
  [0xf6, 'AddressInvalid'],
  [0xf7, 'IntroductionTimedOut'],
])

const HINTS: Readonly<Record<SocksReason, string>> = {
  GeneralFailure: 'the proxy, or the service behind the onion, could not connect; see its log',
  NotAllowed: "the proxy's rules forbid it; check its policy and its port's flags",
  NetworkUnreachable: 'the proxy has no route; check that it is connected',
  HostUnreachable: 'the host did not answer; check its name and that it is up',
  ConnectionRefused: 'nothing is served on this port; check the port number',
  TtlExpired: 'the connection took too long; try again',
  CommandUnsupported: 'the proxy does not know CONNECT; check that it is a SOCKS5 proxy for TCP',
  AddressTypeUnsupported: 'the proxy does not take host names; use one that resolves names itself',
  DescriptorNotFound: 'the onion service has no descriptor; check its address and that it is published',
  DescriptorInvalid: 'the descriptor of the onion service cannot be read; its operator must publish it anew',
  IntroductionFailed: 'no introduction point of the onion service answered; check that it is up',
  RendezvousFailed: 'the onion service did not come to the rendezvous; try again',
  ClientAuthMissing: 'the onion service wants a client key; add one for this address',
  ClientAuthWrong: 'the onion service does not accept our client key; ask its operator for a current one',
  AddressInvalid: 'this is not a valid v3 onion address; check every character',
  IntroductionTimedOut: 'the introduction points of the onion service timed out; try again later',
  UnknownReply: 'the proxy gave a reply that no standard knows; check that it is a SOCKS5 proxy',
  AuthRejected: 'the proxy refused the way of signing in; check user name and password',
  ProtocolError: 'what answers is not a SOCKS5 proxy; check its address',
  ProxyClosed: 'the proxy closed the connection before its answer was complete; see its log',
  ProxyUnreachable: 'the proxy cannot be reached; check that it is running',
  TimedOut: 'the proxy gave no answer in time; try again or allow more time',
}

/** A connection through a SOCKS5 proxy that did not come about. `code` is always `SocksFailed`; look at `reason`. */
export class SocksError extends PosternError {
  override readonly name: string = 'SocksError'
  readonly reason: SocksReason
  /** The reply code as it came (0x01…0xff), -1 when there was none. */
  readonly reply: number

  constructor(
    reason: SocksReason,
    options: { reply?: number; target?: string; detail?: string; cause?: unknown } = {},
  ) {
    const { reply = -1, target, detail } = options
    const what = target === undefined ? 'SOCKS5' : `SOCKS5 to ${target}`
    const extra = detail === undefined ? '' : ` (${detail})`
    super('SocksFailed', `${what}: ${reason}${extra}: ${HINTS[reason]}`, { cause: options.cause })
    this.reason = reason
    this.reply = reply
  }
}

/** The reason behind a reply code other than 0. */
export function reasonOfReply(reply: number): SocksReason {
  return REPLIES.get(reply) ?? 'UnknownReply'
}
