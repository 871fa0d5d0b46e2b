import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  Children,
  freePort,
  installed,
  listening,
  startHaproxy,
  startRelay,
  startSocat,
  throughput,
  webLoad,
} from './relay-parts.ts'

export interface RelayFigure {
  figure: string
  value: number
  unit: string
  bar?: string
  ok?: boolean
}

const ROUNDS = 3
const SECONDS = 3
const PROGRAMS = ['haproxy', 'socat', 'wrk', 'iperf3']

/**
 * Our relay beside haproxy (TCP, one thread) and socat, on loopback and in one run: each figure is taken in turn from
 * all of them, three times, and the medians are compared. About two minutes.
 */
export async function relay(report: (figure: RelayFigure) => void): Promise<void> {
  const missing: string[] = []
  for (const program of PROGRAMS) if (!(await installed(program))) missing.push(program)
  const has = (...programs: string[]) => programs.every((p) => !missing.includes(p))
  const leftOut = (figure: string, ...needed: string[]) => {
    const lacking = needed.filter((p) => missing.includes(p)).join(' ')
    report({ figure: `${figure}: left out, needs: apt-get install ${lacking}`, value: Number.NaN, unit: '' })
  }
  const children = new Children()
  const folder = await mkdtemp(join(tmpdir(), 'bench-relay-'))
  try {
    if (has('iperf3', 'haproxy')) await bytes(children, folder, report)
    else leftOut('relay bytes', 'iperf3', 'haproxy')
    // The small web server that all requests go to is a haproxy, too: it takes the least from the relays.
    if (has('wrk', 'haproxy', 'socat')) await requests(children, folder, report)
    else leftOut('relay connections', 'wrk', 'haproxy', 'socat')
  } finally {
    children.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

type Report = (figure: RelayFigure) => void

async function bytes(children: Children, folder: string, report: Report): Promise<void> {
  const [sink, through] = [await freePort(), await freePort()]
  children.start('iperf3', ['-s', '-p', String(sink), '-B', '127.0.0.1'])
  await listening(sink)
  await startHaproxy(children, folder, 'bytes', { relays: [{ from: through, to: sink }] })
  const ports = { ours: await startRelay(children, sink), haproxy: through }
  for (const streams of [1, 8]) {
    const median = await compare(ports, (port) => throughput(port, streams, SECONDS))
    const what = `relay bytes, ${streams} stream${streams > 1 ? 's' : ''}`
    report({ figure: what, value: median.ours / 1e9, unit: 'Gbit/s' })
    report({ figure: `${what}, haproxy`, value: median.haproxy / 1e9, unit: 'Gbit/s' })
    ratio(report, what, median.ours / median.haproxy, 0.9, 'haproxy')
  }
}

async function requests(children: Children, folder: string, report: Report): Promise<void> {
  const [web, through] = [await freePort(), await freePort()]
  await startHaproxy(children, folder, 'web', { httpPort: web })
  await startHaproxy(children, folder, 'requests', { relays: [{ from: through, to: web }] })
  const ours = await startRelay(children, web)
  // socat isn't the last one, so that its processes have ended by themselves before the bench ends.
  const ports = { ours, socat: await startSocat(children, web), haproxy: through }

  const fresh = await compare(
    ports,
    async (port) => (await webLoad(port, false, 50, SECONDS)).requestsPerSecond,
  )
  report({ figure: 'relay new connections', value: fresh.ours, unit: '/s' })
  report({ figure: 'relay new connections, haproxy', value: fresh.haproxy, unit: '/s' })
  report({ figure: 'relay new connections, socat', value: fresh.socat, unit: '/s' })
  ratio(report, 'relay new connections', fresh.ours / fresh.socat, 2, 'socat')

  const p99 = await compare(ports, async (port) => (await webLoad(port, true, 50, SECONDS)).p99Ms)
  for (const [name, value] of Object.entries(p99)) {
    report({ figure: `relay small request p99, 50 kept connections, ${name}`, value, unit: 'ms' })
  }
}

function ratio(report: Report, figure: string, value: number, bar: number, of: string): void {
  report({ figure: `${figure}, ratio`, value, unit: `x ${of}`, bar: `>= ${bar} x ${of}`, ok: value >= bar })
}

/** Measures each port in turn, several rounds, so that a busy moment of the machine meets all of them. */
async function compare<Name extends string>(
  ports: Record<Name, number>,
  measure: (port: number) => Promise<number>,
): Promise<Record<Name, number>> {
  const names = Object.keys(ports) as Name[]
  const seen = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of names) seen[name].push(await measure(ports[name]))
  }
  return Object.fromEntries(names.map((name) => [name, medianOf(seen[name])])) as Record<Name, number>
}

function medianOf(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

if (import.meta.main) {
  await relay(({ figure, value, unit, bar, ok }) => {
    const verdict = bar === undefined ? '' : `  (${bar}: ${ok ? 'kept' : 'MISSED'})`
    console.log(`${figure}: ${value.toFixed(2)} ${unit}${verdict}`)
  })
}
