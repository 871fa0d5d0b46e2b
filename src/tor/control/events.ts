import type { ControlMessage } from './parser.ts'
import { type ControlArguments, parseArguments } from './quote.ts'

export type HsDescAction = 'CREATED' | 'UPLOAD' | 'UPLOADED' | 'FAILED' | 'REQUESTED' | 'RECEIVED' | 'IGNORE'

export interface HsDescEvent {
  type: 'HS_DESC'
  action: HsDescAction
  /** 56 characters, without `.onion`. */
  address: string
  /** Fingerprint of the directory relay, without `$` and nickname. */
  hsdir?: string
  /** The blinded key in base64; absent from UPLOADED. */
  blinded?: string
  /** Of FAILED. UPLOAD_REJECTED and UNEXPECTED may mean an upload, all others a fetch. */
  reason?: string
}

export interface StatusEvent {
  type: 'STATUS_CLIENT' | 'STATUS_GENERAL'
  /** NOTICE, WARN or ERR. */
  severity: string
  /** e.g. BOOTSTRAP */
  action: string
  args: Record<string, string>
}

export interface OrConnEvent {
  type: 'ORCONN'
  /** As tor writes it: `$FINGERPRINT~name` or `address:port`. */
  target: string
  fingerprint?: string
  /** NEW, LAUNCHED, CONNECTED, FAILED or CLOSED. A dead bridge behind a transport never says FAILED. */
  status: string
  reason?: string
}

export interface GuardEvent {
  type: 'GUARD'
  /** ENTRY, as far as tor writes any. */
  kind: string
  fingerprint: string
  /** NEW, UP, DOWN, DROPPED, and GOOD_L2 or BAD_L2 for relays of the second hop. */
  status: string
}

export interface NetworkLivenessEvent {
  type: 'NETWORK_LIVENESS'
  up: boolean
}

/** Any event that has no shape of its own here, and any that does not have the shape it should. */
export interface OtherEvent {
  type: 'other'
  name: string
  text: string
  data?: string
}

export type TorEvent =
  | HsDescEvent
  | StatusEvent
  | OrConnEvent
  | GuardEvent
  | NetworkLivenessEvent
  | OtherEvent

const HS_DESC_ACTIONS = new Set<string>([
  'CREATED',
  'UPLOAD',
  'UPLOADED',
  'FAILED',
  'REQUESTED',
  'RECEIVED',
  'IGNORE',
] satisfies HsDescAction[])

/** Reads an event (control-spec, section 4.1). Never throws: what is unknown or odd comes back as `other`. */
export function parseEvent(message: ControlMessage): TorEvent {
  const line = message.lines[0]
  const [name = '', ...rest] = (line?.text ?? '').split(' ')
  const text = rest.join(' ')
  return parseNamed(name, text) ?? other(name, text, line?.data)
}

function parseNamed(name: string, text: string): TorEvent | undefined {
  const read = readers.get(name)
  if (read === undefined) return undefined
  try {
    return read(parseArguments(text))
  } catch {
    // Only an unfinished quote comes here: the event is still passed on, as text.
    return undefined
  }
}

const readers: ReadonlyMap<string, (args: ControlArguments) => TorEvent | undefined> = new Map([
  ['HS_DESC', readHsDesc],
  ['STATUS_CLIENT', (args) => readStatus('STATUS_CLIENT', args)],
  ['STATUS_GENERAL', (args) => readStatus('STATUS_GENERAL', args)],
  ['ORCONN', readOrConn],
  ['GUARD', readGuard],
  ['NETWORK_LIVENESS', readLiveness],
])

function readLiveness({ words }: ControlArguments): TorEvent | undefined {
  const [state] = words
  return state === 'UP' || state === 'DOWN' ? { type: 'NETWORK_LIVENESS', up: state === 'UP' } : undefined
}

function readHsDesc({ words, values }: ControlArguments): TorEvent | undefined {
  const [action, address, , relay, blinded] = words
  if (action === undefined || address === undefined || !HS_DESC_ACTIONS.has(action)) return undefined
  const event: HsDescEvent = {
    type: 'HS_DESC',
    action: action as HsDescAction,
    address: address.toLowerCase(),
  }
  if (relay !== undefined && relay !== 'UNKNOWN') event.hsdir = relayFingerprint(relay) ?? relay
  if (blinded !== undefined) event.blinded = blinded
  const reason = values.get('REASON')
  if (reason !== undefined) event.reason = reason
  return event
}

function readStatus(type: StatusEvent['type'], { words, values }: ControlArguments): TorEvent | undefined {
  const [severity, action] = words
  if (severity === undefined || action === undefined) return undefined
  return { type, severity, action, args: Object.fromEntries(values) }
}

function readOrConn({ words, values }: ControlArguments): TorEvent | undefined {
  const [target, status] = words
  if (target === undefined || status === undefined) return undefined
  const event: OrConnEvent = { type: 'ORCONN', target, status }
  const fingerprint = relayFingerprint(target)
  if (fingerprint !== undefined) event.fingerprint = fingerprint
  const reason = values.get('REASON')
  if (reason !== undefined) event.reason = reason
  return event
}

function readGuard({ words }: ControlArguments): TorEvent | undefined {
  const [kind, relay, status] = words
  if (kind === undefined || relay === undefined || status === undefined) return undefined
  return { type: 'GUARD', kind, fingerprint: relayFingerprint(relay) ?? relay, status }
}

/** The fingerprint of `$FINGERPRINT~name`, in upper case. */
export function relayFingerprint(relay: string): string | undefined {
  return /^\$([0-9A-Fa-f]{40})(?:[~=]|$)/.exec(relay)?.[1]?.toUpperCase()
}

function other(name: string, text: string, data: string | undefined): OtherEvent {
  return data === undefined ? { type: 'other', name, text } : { type: 'other', name, text, data }
}
