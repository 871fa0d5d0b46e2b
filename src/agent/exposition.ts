import { readdirSync, readFileSync } from 'node:fs'

/** One value of a series, with what tells it from the others. */
export interface Sample {
  value: number
  labels?: Record<string, string>
}

export interface Series {
  name: string
  help: string
  type: 'counter' | 'gauge'
  labelNames: readonly string[]
  /** Called at each scrape; of many samples only one need be there at a time. */
  read(): Iterable<Sample>
}

/** What a probe server serves as `/metrics`. */
export interface Metrics {
  readonly contentType: string
  metrics(): Promise<string>
}

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/**
 * Series as Prometheus reads them (text format 0.0.4), with what Node.js says of its process behind them. A library
 * would take 3 MB of an agent's memory for it.
 */
export class Exposition implements Metrics {
  readonly contentType: string = CONTENT_TYPE
  readonly series: readonly Series[]
  readonly #refresh: () => Promise<void>

  /** @param refresh awaited before the series are read; it must not fail */
  constructor(series: readonly Series[], refresh: () => Promise<void> = async () => {}) {
    this.series = [...series, ...PROCESS]
    this.#refresh = refresh
  }

  async metrics(): Promise<string> {
    await this.#refresh()
    const lag = await eventLoopLag()
    const all = [...this.series, gauge('nodejs_eventloop_lag_seconds', 'Lag of the event loop.', () => lag)]
    return all.map(text).join('')
  }
}

export function gauge(name: string, help: string, read: () => number | Iterable<Sample>): Series {
  return { name, help, type: 'gauge', labelNames: [], read: () => samples(read()) }
}

export function counter(name: string, help: string, read: () => number | Iterable<Sample>): Series {
  return { name, help, type: 'counter', labelNames: [], read: () => samples(read()) }
}

function samples(read: number | Iterable<Sample>): Iterable<Sample> {
  return typeof read === 'number' ? [{ value: read }] : read
}

function text({ name, help, type, read }: Series): string {
  const lines = [
    `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n`,
  ]
  for (const { value, labels = {} } of read()) {
    let pairs = ''
    for (const label in labels) pairs += `${pairs === '' ? '{' : ','}${label}="${escaped(labels[label]!)}"`
    lines.push(`${name}${pairs === '' ? '' : `${pairs}}`} ${numeral(value)}\n`)
  }
  return lines.join('')
}

function escaped(word: string): string {
  return word.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}

function numeral(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}

/** Names and meanings are those that every Node.js process is known by. */
const PROCESS: readonly Series[] = [
  counter('process_cpu_user_seconds_total', 'Total user CPU time spent in seconds.', () => cpu('user')),
  counter('process_cpu_system_seconds_total', 'Total system CPU time spent in seconds.', () => cpu('system')),
  counter(
    'process_cpu_seconds_total',
    'Total user and system CPU time spent in seconds.',
    () => cpu('user') + cpu('system'),
  ),
  gauge('process_start_time_seconds', 'Start time of the process since unix epoch in seconds.', () =>
    Math.round(Date.now() / 1000 - process.uptime()),
  ),
  gauge('process_resident_memory_bytes', 'Resident memory size in bytes.', () => process.memoryUsage.rss()),
  gauge('process_open_fds', 'Number of open file descriptors.', openFiles),
  gauge('process_max_fds', 'Maximum number of open file descriptors.', mostFiles),
  gauge('nodejs_heap_size_total_bytes', 'Process heap size from Node.js in bytes.', () => heap('heapTotal')),
  gauge('nodejs_heap_size_used_bytes', 'Process heap size used from Node.js in bytes.', () =>
    heap('heapUsed'),
  ),
  gauge('nodejs_external_memory_bytes', 'Node.js external memory size in bytes.', () => heap('external')),
  {
    ...gauge('nodejs_version_info', 'Node.js version info.', () => [
      { value: 1, labels: { version: process.version } },
    ]),
    labelNames: ['version'],
  },
]

function cpu(of: 'user' | 'system'): number {
  return process.cpuUsage()[of] / 1e6
}

function heap(of: 'heapTotal' | 'heapUsed' | 'external'): number {
  return process.memoryUsage()[of]
}

function openFiles(): readonly Sample[] {
  try {
    // One of them is this very look.
    return [{ value: readdirSync('/proc/self/fd').length - 1 }]
  } catch {
    return []
  }
}

function mostFiles(): readonly Sample[] {
  try {
    const limit = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    if (limit === undefined) return []
    return [{ value: limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit) }]
  } catch {
    return []
  }
}

/** Seconds that a turn of the event loop takes right now. */
function eventLoopLag(): Promise<number> {
  const began = performance.now()
  return new Promise((resolve) => setImmediate(() => resolve((performance.now() - began) / 1000)))
}
