import { PosternError } from '../core/errors.ts'
import { type BridgeHealth, REPORT_VERSION, type TorReport } from './contract.ts'
import { WATCH_LIMIT } from './limits.ts'

const FINGERPRINT = /^[0-9A-F]{40}$/
const REASON = /^[A-Z][A-Za-z0-9]{0,63}$/
const BRIDGE_STATES: ReadonlySet<unknown> = new Set<BridgeHealth>(['healthy', 'dead', 'unknown'])

/** Checks what an agent sent: shape and version, so that planning can rely on it. */
export function guardReport(document: unknown): TorReport {
  const report = object(document, 'report')
  if (report.version !== REPORT_VERSION) {
    throw new PosternError(
      'ReportVersion',
      `the agent reports version ${String(report.version)}, this operator reads ${REPORT_VERSION}; run the same release of both`,
    )
  }
  if (!Number.isSafeInteger(report.revision)) fail('revision')
  if (typeof report.applied !== 'string') fail('applied')
  if (report.leaving !== undefined && typeof report.leaving !== 'boolean') fail('leaving')
  const tor = object(report.tor, 'tor')
  if (typeof tor.running !== 'boolean' || typeof tor.bootstrapped !== 'boolean') fail('tor')
  if (typeof tor.progress !== 'number') fail('tor.progress')
  for (const onion of list(report.onions, 'onions')) {
    if (typeof onion.name !== 'string' || typeof onion.address !== 'string') fail('onions')
    if (typeof onion.state !== 'string') fail('onions.state')
    if (onion.lastUpload !== undefined && typeof onion.lastUpload !== 'number') fail('onions.lastUpload')
  }
  for (const target of list(report.targets, 'targets')) {
    if (typeof target.proxy !== 'string' || typeof target.target !== 'string') fail('targets')
    if (typeof target.listening !== 'boolean') fail('targets.listening')
    if (target.reachable !== undefined && typeof target.reachable !== 'boolean') fail('targets.reachable')
  }
  if (report.bridges !== undefined) {
    for (const bridge of list(report.bridges, 'bridges')) {
      if (typeof bridge.fingerprint !== 'string' || !FINGERPRINT.test(bridge.fingerprint)) {
        fail('bridges.fingerprint')
      }
      if (!BRIDGE_STATES.has(bridge.state)) fail('bridges.state')
      if (!Number.isSafeInteger(bridge.since)) fail('bridges.since')
      if (bridge.reason !== undefined && typeof bridge.reason !== 'string') fail('bridges.reason')
    }
  }
  if (report.access !== undefined) {
    for (const port of list(report.access, 'access')) {
      if (port.name !== 'socks' && port.name !== 'httpConnect') fail('access.name')
      if (typeof port.listening !== 'boolean') fail('access.listening')
      if (port.message !== undefined && typeof port.message !== 'string') fail('access.message')
    }
  }
  if (report.watched !== undefined) {
    const watched = list(report.watched, 'watched')
    if (watched.length > WATCH_LIMIT) fail('watched')
    for (const onion of watched) checkWatched(onion)
  }
  return report as unknown as TorReport
}

function checkWatched(onion: Record<string, unknown>): void {
  const { namespace, name, address } = onion
  if (![namespace, name, address].every((text) => typeof text === 'string')) fail('watched')
  for (const field of ['reachable', 'circuits']) {
    if (onion[field] !== undefined && typeof onion[field] !== 'boolean') fail(`watched.${field}`)
  }
  // It becomes the reason of a condition.
  if (onion.reason !== undefined && (typeof onion.reason !== 'string' || !REASON.test(onion.reason))) {
    fail('watched.reason')
  }
  if (onion.message !== undefined && (typeof onion.message !== 'string' || onion.message.length > 1024)) {
    fail('watched.message')
  }
  if (onion.probed !== undefined && typeof onion.probed !== 'number') fail('watched.probed')
  if (!Number.isSafeInteger(onion.failures) || (onion.failures as number) < 0) fail('watched.failures')
}

function object(value: unknown, where: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) fail(where)
  return value as Record<string, unknown>
}

function list(value: unknown, where: string): Record<string, unknown>[] {
  if (!Array.isArray(value)) fail(where)
  return (value as unknown[]).map((item) => object(item, where))
}

function fail(where: string): never {
  throw new PosternError('ReportMalformed', `the agent's report is malformed at ${where}`)
}
