import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { BUNDLES, makeBundle } from '../scripts/build/bundles.ts'
import { environmentOf } from '../scripts/images/make.ts'
import { version } from '../src/cli/version.ts'
import { makeReportIdentity } from '../src/controller/report-identity.ts'
import {
  METRICS_PORT,
  REPORT_CERTIFICATE_FILE,
  REPORT_KEY_FILE,
  REPORT_TOKEN_FILE,
  TOPOLOGY_FILE,
  type TorTopology,
} from '../src/tor/contract.ts'
import { generateOnionKey } from '../src/tor/onion/key.ts'
import { startTorNetwork } from '../testbed/tor-network/network.ts'
import type { Report } from './figure.ts'

const ONIONS = 10
const BAR = 75
/** An address that nothing else on this machine uses, since an agent's ports are fixed. */
const ADDRESS = '127.77.254.1'
const LIMIT_MS = 180_000
const SAMPLES = 10

/** What an agent takes as the image runs it: its bundle, beside its real tor with ten published onions. */
export async function agent(report: Report): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'pba-'))
  let child: ChildProcess | undefined
  try {
    await using network = await startTorNetwork({ state: join(folder, 'net') })
    const spec = BUNDLES.find(({ name }) => name === 'tor-agent')!
    const bundle = await makeBundle(spec, folder, version())
    report({
      figure: 'agent: its bundle',
      value: bundle.bytes / 1000,
      unit: 'kB',
      bar: `<= ${spec.budget / 1000} kB`,
      ok: bundle.bytes <= spec.budget,
    })
    child = startAgent(folder, bundle.file, network.options)
    await untilPublished(child)
    const own: number[] = []
    const tor: number[] = []
    for (let sample = 0; sample < SAMPLES; sample++) {
      await pause(1000)
      // As Prometheus does now and then.
      await scrape()
      own.push(megabytes(child.pid!))
      tor.push(megabytes(childOf(child.pid!)))
    }
    const value = median(own)
    report({
      figure: `agent: memory beside its tor, ${ONIONS} onions`,
      value,
      unit: 'MB',
      bar: `<= ${BAR} MB`,
      ok: value <= BAR,
    })
    report({ figure: `agent: memory of its tor, ${ONIONS} onions`, value: median(tor), unit: 'MB' })
  } finally {
    await end(child)
    rmSync(folder, { recursive: true, force: true })
  }
}

function startAgent(folder: string, bundle: string, options: Readonly<Record<string, string>>): ChildProcess {
  const keys = Array.from({ length: ONIONS }, () => generateOnionKey())
  const topology: TorTopology = {
    version: 1,
    daemon: { name: 'tor', namespace: 'bench', logLevel: 'notice', options: { ...options } },
    onions: keys.map(({ address }, index) => ({
      name: `onion-${index}`,
      address,
      since: index,
      ports: [{ virtualPort: 80, endpoints: [{ host: '127.0.0.1', port: 9 }] }],
    })),
    proxies: [],
  }
  const identity = makeReportIdentity('bench')
  const mounted: Record<string, string | Uint8Array> = {
    [`topology/${TOPOLOGY_FILE}`]: JSON.stringify(topology),
    [`keys/${REPORT_CERTIFICATE_FILE}`]: identity.certificate,
    [`keys/${REPORT_KEY_FILE}`]: identity.privateKey,
    [`keys/${REPORT_TOKEN_FILE}`]: identity.token,
  }
  for (const [index, { secret }] of keys.entries()) mounted[`keys/onion-${index}.key`] = secret
  for (const name of ['topology', 'keys']) mkdirSync(join(folder, name))
  for (const [path, content] of Object.entries(mounted)) {
    writeFileSync(join(folder, path), content, { mode: 0o600 })
  }
  const places = ['topology', 'keys', 'data', 'run'].flatMap((name) => [`--${name}`, join(folder, name)])
  return spawn(process.execPath, [bundle, ...places, '--address', ADDRESS], {
    stdio: 'ignore',
    env: { ...process.env, ...environmentOf('postern-tor'), PATH: process.env.PATH },
  })
}

async function untilPublished(child: ChildProcess): Promise<void> {
  const deadline = performance.now() + LIMIT_MS
  let seen = ''
  while (!seen.includes(`\ntor_agent_onions_published ${ONIONS}\n`)) {
    if (child.exitCode !== null) throw new Error(`the agent ended with ${child.exitCode}`)
    if (performance.now() > deadline) {
      throw new Error(`not all onions were published within ${LIMIT_MS / 1000} s; saw ${seen.slice(0, 2000)}`)
    }
    await pause(200)
    seen = await scrape().catch(String)
  }
}

async function scrape(): Promise<string> {
  return (await fetch(`http://${ADDRESS}:${METRICS_PORT}/metrics`)).text()
}

/** What the kernel says. */
function megabytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0])
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const late = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await ended
  clearTimeout(late)
}
