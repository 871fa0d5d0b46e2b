import { get } from 'node:http'
import { createServer } from 'node:net'
import { PosternError } from '../../core/errors.ts'

/** tor's MetricsPort: series in Prometheus' text format, by plain HTTP (tor's manual, MetricsPort). */

export interface PortSample {
  name: string
  labels: Readonly<Record<string, string>>
  value: number
}

export interface ScrapeOptions {
  host: string
  port: number
  /** Names of the series to take; lines of others are not even looked at. */
  names: ReadonlySet<string>
  onSample(sample: PortSample): void
  /** For the whole answer; default 2 s. */
  timeoutMs?: number
  /** Of the whole answer, which is not kept; default 32 MiB: tor writes 5 KB an onion, and has 2,000 at most. */
  maxBytes?: number
}

const LINE_MOST = 16_384
const NAME = /[A-Za-z_:][A-Za-z0-9_:]*/y
const LABEL = /[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(,?)/y
const VALUE = /^[ \t]+(\S+)(?:[ \t]+-?\d+)?[ \t\r]*$/

/**
 * Asks the port once. The connection comes from the address that it goes to, which is what tor's policy looks for.
 *
 * @throws PosternError TorMetricsUnusable when there is no whole answer within the limits
 */
export function scrape(options: ScrapeOptions): Promise<void> {
  const { host, port, timeoutMs = 2_000, maxBytes = 32 * 1024 * 1024 } = options
  return new Promise((resolve, reject) => {
    const fail = (what: string, cause?: unknown): void => {
      clearTimeout(limit)
      request.destroy()
      reject(new PosternError('TorMetricsUnusable', `tor's MetricsPort ${what}`, { cause }))
    }
    const limit = setTimeout(() => fail(`gave no whole answer in ${timeoutMs} ms`), timeoutMs)
    const request = get({ host, port, path: '/metrics', localAddress: host, agent: false }, (response) => {
      if (response.statusCode !== 200) return fail(`answered with status ${response.statusCode}`)
      let bytes = 0
      let rest = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        bytes += chunk.length
        if (bytes > maxBytes) return fail(`has more than ${maxBytes} bytes to say`)
        rest = readLines(rest + chunk, options)
        if (rest.length > LINE_MOST) fail(`sent a line of more than ${LINE_MOST} characters`)
      })
      response.on('error', (error) => fail('broke off its answer', error))
      response.on('end', () => {
        readLines(`${rest}\n`, options)
        clearTimeout(limit)
        resolve()
      })
    })
    request.on('error', (error) => fail('does not answer', error))
  })
}

/** @returns what stands behind the last line's end */
function readLines(text: string, { names, onSample }: ScrapeOptions): string {
  let start = 0
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
    if (names.has(nameAt(text, start))) {
      const sample = parseSample(text.slice(start, end))
      if (sample !== undefined) onSample(sample)
    }
    start = end + 1
  }
  return text.slice(start)
}

function nameAt(text: string, start: number): string {
  NAME.lastIndex = start
  return NAME.exec(text)?.[0] ?? ''
}

/** Reads one line; undefined for a comment, an empty line, and what is no sample with a finite value. */
export function parseSample(line: string): PortSample | undefined {
  const name = nameAt(line, 0)
  if (name === '') return undefined
  const labels: Record<string, string> = Object.create(null) as Record<string, string>
  let at = name.length
  if (line[at] === '{') {
    at += 1
    for (let more = true; more && line[at] !== '}'; ) {
      LABEL.lastIndex = at
      const found = LABEL.exec(line)
      if (found === null) return undefined
      labels[found[1]!] = unescaped(found[2]!)
      more = found[3] === ','
      at = LABEL.lastIndex
    }
    if (line[at] !== '}') return undefined
    at += 1
  }
  const text = VALUE.exec(`${at === name.length ? '' : ' '}${line.slice(at)}`)?.[1]
  const value = text === undefined ? Number.NaN : Number(text)
  return Number.isFinite(value) ? { name, labels, value } : undefined
}

function unescaped(text: string): string {
  return text.includes('\\')
    ? text.replace(/\\(.)/g, (whole, mark) =>
        mark === 'n' ? '\n' : mark === '"' || mark === '\\' ? mark : whole,
      )
    : text
}

/** A port that nobody listens on right now; tor takes none by itself here (no `auto`). */
export function freePort(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, host, () => {
      const address = server.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      server.close(() => resolve(port))
    })
  })
}
