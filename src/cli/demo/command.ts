import { join, relative, resolve } from 'node:path'
import { addressOf } from '../announce.ts'
import { Exit, exitCodeOf, UsageError } from '../errors.ts'
import { progressOn, SILENT_PROGRESS } from '../progress.ts'
import { onStop } from '../signals.ts'
import { type Style, styleFor } from '../style.ts'
import { ROOT, version } from '../version.ts'
import { type DemoReport, failed } from './report.ts'
import { type DemoOptions, runDemo, type Visit } from './run.ts'

export interface DemoCommandOptions {
  once?: true
  output: 'text' | 'json'
  state?: string
}

/** `postern demo`: shows it, and sets the exit code. */
export async function runDemoCommand(options: DemoCommandOptions): Promise<void> {
  const json = options.output === 'json'
  if (json && options.once !== true)
    throw new UsageError('--output json needs --once: a demo that goes on has no end to print')
  const state = resolve(options.state ?? join(ROOT, '.postern', 'demo'))
  const style = styleFor(process.stdout)
  // With JSON nothing else may stand on stdout; a person who looks on sees the steps on stderr.
  const progress = !json
    ? progressOn(process.stdout, style)
    : process.stderr.isTTY
      ? progressOn(process.stderr, styleFor(process.stderr))
      : SILENT_PROGRESS
  const stop = onStop()
  if (!json) console.log(`${style('bold', `Postern ${version()}`)}  a demo, with its state in ${state}\n`)
  let fetched = false
  const report = await demoOrReason(json, {
    state,
    progress,
    signal: stop.signal,
    async whileItRuns(visit) {
      fetched = true
      if (!json) console.log(visitText(visit, state, style, options.once === true))
      if (options.once !== true) await stop.asked
    },
  }).finally(() => stop.dispose())
  if (json) console.log(JSON.stringify(report))
  else if (!report.ok && !(stop.signal.aborted && fetched)) console.error(failureText(report, state))
  if (!report.ok) process.exitCode ??= Exit.failed
}

/** With JSON, even what is wrong before the first step is a document. */
async function demoOrReason(json: boolean, options: DemoOptions): Promise<DemoReport> {
  try {
    return await runDemo(options)
  } catch (error) {
    if (!json) throw error
    process.exitCode = exitCodeOf(error)
    return failed(error, undefined, [], [])
  }
}

function visitText(visit: Visit, state: string, style: Style, once: boolean): string {
  const url = addressOf(visit.onion, 80)
  if (once) return `\n  ${style('bold', url)}`
  const bin = shortest(join(ROOT, 'bin', 'postern'))
  const where = shortest(state)
  const line = (what: string, command: string): string => `  ${what.padEnd(12)}${style('cyan', command)}`
  return [
    '',
    line('The onion', url),
    line('Visit it', `curl --socks5-hostname 127.0.0.1:${visit.socksPort} ${url}`),
    line('Look at it', `${bin} get onionservices --state ${where}`),
    line('', `${bin} describe onionservice web --state ${where}`),
    `  ${'Change it'.padEnd(12)}what you save in ${shortest(visit.manifests)} takes effect at once`,
    '',
    '  Ctrl-C ends it, and everything that it started.',
  ].join('\n')
}

function failureText(report: DemoReport & { ok: false }, state: string): string {
  return [
    `\npostern: the demo did not work: ${report.reason}`,
    ...report.conditions.map((line) => `  ${line}`),
    `  more in ${join(state, 'postern.log')}, ${join(state, 'logs')} and ${join(state, 'net')}`,
  ].join('\n')
}

/** A path as it is typed here: relative, unless that would lead upwards. */
function shortest(path: string): string {
  const near = relative(process.cwd(), path)
  return near === '' ? '.' : near.startsWith('..') ? path : near
}
