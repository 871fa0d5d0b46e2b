import type { BridgeHealth } from '../contract.ts'
import { relayFingerprint, type TorEvent } from '../control/events.ts'

/**
 * Unreachable: its address refuses, or no connection came about for another reason; NoAnswer: something is there, and
 * silent; FingerprintMismatch: it is another relay than the line says; HandshakeFailed: it does not speak as a relay does.
 */
export type BridgeReason = 'Unreachable' | 'NoAnswer' | 'FingerprintMismatch' | 'HandshakeFailed'

/** What is known of one bridge. */
export interface BridgeRecord {
  state: BridgeHealth
  /** Milliseconds since the epoch at which it came into this state. */
  since: number
  /** Why it is dead. */
  reason?: BridgeReason
  /** The attempt to connect that runs, or the last one if it failed. */
  attempt?: { at: number; reason?: BridgeReason }
}

/**
 * A word of tor on one bridge. There is none for a connection that ended: tor ends idle ones, tries again as soon as it
 * needs the bridge, and then says what came of it.
 */
export type BridgeNews = { type: 'launched' | 'reached' | 'down' } | { type: 'failed'; reason: string }

/** Behind a transport tor waits for 30 s; who refuses does so at once. */
const SILENT_MS = 10_000

/** A bridge that tor has not tried yet. */
export function untried(now: number): BridgeRecord {
  return { state: 'unknown', since: now }
}

/**
 * A bridge after a word of tor on it. The last one that decides counts: a bridge that fell silent is down for tor, whose
 * connection to it may stay open for hours.
 */
export function afterNews(record: BridgeRecord, news: BridgeNews, now: number): BridgeRecord {
  switch (news.type) {
    case 'launched':
      return { ...record, attempt: { at: now } }
    case 'reached':
      return { state: 'healthy', since: record.state === 'healthy' ? record.since : now }
    case 'failed': {
      // The first reason is the one; others only tell that the connection ended for it.
      const reason = record.attempt?.reason ?? reasonOf(news.reason)
      return dead({ ...record, attempt: { at: record.attempt?.at ?? now, reason } }, reason, now)
    }
    case 'down':
      return dead(record, reasonOfDown(record, now), now)
  }
}

function dead({ attempt, ...record }: BridgeRecord, reason: BridgeReason, now: number): BridgeRecord {
  const since = record.state === 'dead' ? record.since : now
  return { state: 'dead', since, reason, ...(attempt === undefined ? {} : { attempt }) }
}

function reasonOfDown({ state, reason, attempt }: BridgeRecord, now: number): BridgeReason {
  if (attempt === undefined) return reason ?? (state === 'healthy' ? 'NoAnswer' : 'Unreachable')
  return attempt.reason ?? (now - attempt.at < SILENT_MS ? 'Unreachable' : 'NoAnswer')
}

function reasonOf(text: string): BridgeReason {
  switch (text) {
    case 'IDENTITY':
      return 'FingerprintMismatch'
    case 'CONNECTREFUSED':
    case 'NOROUTE':
    case 'PT_MISSING':
      return 'Unreachable'
    case 'TIMEOUT':
      return 'NoAnswer'
    default:
      return 'HandshakeFailed'
  }
}

/** What an event says of which relay; undefined when it decides nothing. */
export function newsOfEvent(event: TorEvent): { fingerprint: string; news: BridgeNews } | undefined {
  if (event.type === 'GUARD') {
    const { fingerprint, kind, status } = event
    if (kind !== 'ENTRY' || (status !== 'UP' && status !== 'DOWN')) return undefined
    return { fingerprint, news: { type: status === 'UP' ? 'reached' : 'down' } }
  }
  if (event.type !== 'ORCONN' || event.fingerprint === undefined) return undefined
  const { fingerprint, status, reason = '' } = event
  if (status === 'LAUNCHED') return { fingerprint, news: { type: 'launched' } }
  if (status === 'CONNECTED') return { fingerprint, news: { type: 'reached' } }
  return status === 'FAILED' ? { fingerprint, news: { type: 'failed', reason } } : undefined
}

/**
 * What tor's lists say of the relays in them, for the time in which nobody listened. That a guard is `up` is no news: it
 * also stands at one that is only not known to be down, and at one of a former life.
 *
 * @param connections GETINFO orconn-status
 * @param guards GETINFO entry-guards
 */
export function newsOfLists(connections: string, guards: string): Map<string, BridgeNews> {
  const news = new Map<string, BridgeNews>()
  for (const [fingerprint, status] of rows(connections)) {
    if (status === 'CONNECTED') news.set(fingerprint, { type: 'reached' })
  }
  const all = [...rows(guards)]
  // One fingerprint may stand there twice, with the addresses of two lines.
  const up = new Set(all.filter(([, status]) => status === 'up').map(([fingerprint]) => fingerprint))
  for (const [fingerprint, status] of all) {
    if (status === 'down' && !up.has(fingerprint)) news.set(fingerprint, { type: 'down' })
  }
  return news
}

function* rows(text: string): Generator<[fingerprint: string, status: string]> {
  for (const line of text.split('\n')) {
    const [relay = '', status = ''] = line.trim().split(' ')
    const fingerprint = relayFingerprint(relay)
    if (fingerprint !== undefined) yield [fingerprint, status]
  }
}
