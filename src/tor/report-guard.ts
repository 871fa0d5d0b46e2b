import { PosternError } from '../core/errors.ts'
import { REPORT_VERSION, type TorReport } from './contract.ts'

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
  return report as unknown as TorReport
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
