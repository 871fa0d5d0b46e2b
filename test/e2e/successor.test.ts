import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { type ReportSource, Reports } from '../../src/cluster/reports.ts'
import { makeReportIdentity } from '../../src/controller/report-identity.ts'
import { messageOf } from '../../src/core/errors.ts'
import { socks5Connect } from '../../src/relay/socks5.ts'
import { REPORT_PORT, type TorReport, type TorTopology } from '../../src/tor/contract.ts'
import { generateOnionKey } from '../../src/tor/onion/key.ts'
import { guardReport } from '../../src/tor/report-guard.ts'
import { sharedTorNetwork } from '../../testbed/tor-network/shared.ts'
import { webServer } from './up.ts'
import { body, page, visitUntil } from './visit.ts'

/** One pod takes over from another, as in a rollout: the same onion, two agents, and visitors all the while. */

const network = await sharedTorNetwork()
const MAIN = resolve(import.meta.dirname, '../../src/tor/agent/main.ts')
const key = generateOnionKey()
const identity = makeReportIdentity('successor-test')

interface Pod extends AsyncDisposable {
  source: ReportSource
  process: ChildProcess
  /** Exit code, or the signal that ended it. */
  ended: Promise<number | string | null>
  output(): string
  ready(): Promise<[number, string]>
}

/** An agent as a pod runs it, on an address of its own; its onion leads to this port. */
function startPod(address: string, port: number): Pod {
  const base = mkdtempSync(join(tmpdir(), 'sc-'))
  for (const folder of ['topology', 'keys']) mkdirSync(join(base, folder))
  const topology: TorTopology = {
    version: 1,
    daemon: { name: 'tor', namespace: 'shop', logLevel: 'notice', options: network.options },
    onions: [
      {
        name: 'web',
        address: key.address,
        since: 0,
        ports: [{ virtualPort: 80, endpoints: [{ host: '127.0.0.1', port }] }],
      },
    ],
    proxies: [],
  }
  const keys = { 'report.crt': identity.certificate, 'report.pem': identity.privateKey }
  for (const [file, content] of Object.entries({
    ...keys,
    'report.token': identity.token,
    'web.key': key.secret,
  })) {
    writeFileSync(join(base, 'keys', file), content, { mode: 0o600 })
  }
  writeFileSync(join(base, 'topology', 'topology.json'), JSON.stringify(topology))
  const folders = ['topology', 'keys', 'data', 'run'].flatMap((name) => [`--${name}`, join(base, name)])
  const child = spawn(process.execPath, [MAIN, ...folders, '--address', address, '--linger', '120'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const from of [child.stdout, child.stderr]) {
    from.on('data', (chunk) => {
      output += chunk
    })
  }
  const ended = new Promise<number | string | null>((done) =>
    child.once('exit', (code, signal) => done(code ?? signal)),
  )
  return {
    source: { host: address, port: REPORT_PORT, certificate: identity.certificate, token: identity.token },
    process: child,
    ended,
    output: () => output,
    async ready() {
      const reply = await fetch(`http://${address}:9080/readyz`).catch(() => undefined)
      return reply === undefined ? [0, 'not there yet'] : [reply.status, await reply.text()]
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
      rmSync(base, { recursive: true, force: true })
    },
  }
}

/** A stream of one visitor: all of them take the same circuit as long as it is there. */
function kept(host: string): Promise<Socket> {
  return socks5Connect({
    proxy: { host: '127.0.0.1', port: network.socksPort },
    host,
    port: 80,
    username: `kept-${process.pid}`,
    password: 'x',
    timeoutMs: 60_000,
  })
}

interface Visit {
  saw: string
  tries: number
  errors: string[]
}

/** Visits one after the other, each retried once, until it is told to stop. */
function visitors(count: number, host: string): { visits: Visit[]; stop(): Promise<void> } & Disposable {
  const visits: Visit[] = []
  let going = true
  const runs = Array.from({ length: count }, async () => {
    while (going) {
      const visit: Visit = { saw: '', tries: 0, errors: [] }
      while (visit.saw === '' && visit.tries < 2) {
        visit.tries += 1
        visit.saw = await page(network.socksPort, host).catch((error) => {
          visit.errors.push(messageOf(error))
          return ''
        })
      }
      visits.push(visit)
    }
  })
  const stop = async (): Promise<void> => {
    going = false
    await Promise.all(runs)
  }
  // A test that failed does not wait for them.
  const dispose = (): void => {
    going = false
  }
  return { visits, stop, [Symbol.dispose]: dispose }
}

/** Answers each visit at once, but the one download only when it is told. */
async function oldBackend() {
  const held = Promise.withResolvers<ServerResponse>()
  const server = createServer((request, response) => {
    if (request.headers.host !== 'download') return response.end('old')
    response.write('begun')
    held.resolve(response)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    port: (server.address() as AddressInfo).port,
    held: held.promise,
    [Symbol.dispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

test('a pod is replaced: no visit fails, a running download ends by itself', async () => {
  const host = `${key.address}.onion`
  using before = await oldBackend()
  using after = await webServer('new')
  const reports = new Reports<TorReport>(guardReport, () => {})
  using _closing = { [Symbol.dispose]: () => reports.close() }
  await using a = startPod('127.77.251.1', before.port)
  reports.follow('a', a.source)
  const until = async (what: string, look: () => unknown): Promise<void> => {
    const end = Date.now() + 60_000
    while (!(await look())) {
      const seen = () => ['a', 'b'].map((name) => JSON.stringify(reports.get(name))).join('\n')
      if (Date.now() > end) assert.fail(`not within a minute: ${what}; saw\n${seen()}\n${a.output()}`)
      await pause(50)
    }
  }
  const published = (name: string) => () =>
    reports.get(name)?.report?.onions.every(({ state }) => state === 'published')
  await until('the first pod to be ready', async () => (await a.ready())[0] === 200)
  assert.ok(published('a')() ?? true, 'ready means published')
  await visitUntil(network.socksPort, host, 'old')
  using crowd = visitors(3, host)
  const download = body(await kept(host), 'download')
  const rest = await before.held

  // As `kubectl delete pod` does it: the successor starts when the old pod is told to end.
  a.process.kill('SIGTERM')
  await using b = startPod('127.77.251.2', after.port)
  await until('it leaves', () => reports.get('a')?.report?.leaving)
  assert.equal((await a.ready())[0], 200)
  reports.follow('b', b.source)
  const waits: string[] = []
  await until('the second pod to be ready', async () => {
    const [status, text] = await b.ready()
    if (status === 503) waits.push(text)
    return status === 200
  })
  await until('its onion to be published', published('b'))
  assert.ok(
    waits.some((text) => /onions are being published for the first time: web/.test(text)),
    waits.join(''),
  )
  await reports.retire(a.source)
  await until('a visitor to see the second', () => crowd.visits.some(({ saw }) => saw === 'new'))
  assert.equal(a.process.exitCode, null, 'the download still runs')
  assert.equal(await body(await kept(host), host), 'old', 'who is in may go on: a new stream on its circuit')
  rest.end('.done')
  assert.match(await download, /begun[\s\S]*\.done/)
  assert.equal(await a.ended, 0, a.output())
  const seen = crowd.visits.length
  await until('visits after the end', () => crowd.visits.length > seen + 6)
  await crowd.stop()
  const failed = crowd.visits.filter(({ saw }) => saw === '')
  assert.deepEqual(failed, [], `of ${crowd.visits.length} visits`)
  const late = crowd.visits.slice(seen + 3)
  assert.ok(
    late.every(({ saw }) => saw === 'new'),
    JSON.stringify(late),
  )

  // A second signal ends it at once, whatever it waits for.
  b.process.kill('SIGTERM')
  await until('it leaves', () => reports.get('b')?.report?.leaving)
  b.process.kill('SIGTERM')
  assert.equal(await b.ended, 1, b.output())
})
