import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { freePorts } from '../../../testbed/tor-network/ports.ts'
import { version } from '../version.ts'

/** The process as a pod runs it, against a server that knows no kind at all. */

const POSTERN = join(import.meta.dirname, '..', '..', '..', 'bin', 'postern')

interface Line {
  time: string
  level: string
  msg: string
  [key: string]: unknown
}

interface Operator {
  child: ChildProcess
  lines: Line[]
  output(): string
  exit: Promise<number | string>
}

function start(t: TestContext, words: string[], env: Record<string, string> = {}): Operator {
  const child = spawn(POSTERN, ['operator', ...words], {
    env: { PATH: process.env.PATH, HOME: '/nowhere', ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  t.after(() => child.kill('SIGKILL'))
  let text = ''
  const lines: Line[] = []
  let rest = ''
  child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    const parts = (rest + chunk).split('\n')
    rest = parts.pop()!
    for (const part of parts) if (part.startsWith('{')) lines.push(JSON.parse(part) as Line)
  })
  const exit = new Promise<number | string>((resolve) =>
    child.once('close', (code, signal) => resolve(code ?? signal ?? '?')),
  )
  return { child, lines, output: () => text, exit }
}

async function apiServer(t: TestContext): Promise<Server> {
  const server = createServer((request, response) => {
    const status = {
      kind: 'Status',
      apiVersion: 'v1',
      status: 'Failure',
      reason: 'NotFound',
      message: 'the server could not find the requested resource',
      code: 404,
    }
    request.resume()
    response.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify(status))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return server
}

function kubeconfig(t: TestContext, server: Server): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-operator-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'config')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  writeFileSync(
    path,
    JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: url } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      users: [{ name: 'u', user: {} }],
      'current-context': 'c',
    }),
  )
  return path
}

async function until<T>(look: () => Promise<T | undefined>, seen: () => string): Promise<T> {
  const end = performance.now() + 20_000
  for (;;) {
    const found = await look().catch(() => undefined)
    if (found !== undefined) return found
    assert.ok(performance.now() < end, `still not: ${look}\n${seen()}`)
    await pause(20)
  }
}

test('it is alive and says what it waits for, logs JSON, and ends in order at SIGTERM', async (t) => {
  const [health, metrics] = (await freePorts(2)) as [number, number]
  const operator = start(
    t,
    ['--kubeconfig', kubeconfig(t, await apiServer(t)), '--health-address', `127.0.0.1:${health}`],
    { POSTERN_TOR_IMAGE: 'postern-tor', POSTERN_METRICS_ADDRESS: `127.0.0.1:${metrics}` },
  )
  const get = (port: number, path: string): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`)
  const ready = await until(async () => {
    const response = await get(health, '/readyz')
    const text = await response.text()
    const told = [/not installed/, /^onionservices: LIST/m].every((part) => part.test(text))
    return response.status === 503 && told ? text : undefined
  }, operator.output)
  assert.match(ready, /^the CustomResourceDefinition onionservices\.tor\.fr0st\.dev is not installed: /m)
  assert.match(ready, /^onionservices: LIST OnionService: the server could not find the requested resource/m)
  assert.equal((await get(health, '/livez')).status, 200)
  assert.equal((await get(health, '/metrics')).status, 404)
  assert.equal((await get(metrics, '/livez')).status, 404)
  const text = await (await get(metrics, '/metrics')).text()
  assert.match(text, new RegExp(`^postern_build_info\\{version="${version()}",node="[\\d.]+"\\} 1$`, 'm'))
  assert.match(text, /^postern_rest_client_requests_total\{code="404",method="GET"\} [1-9]/m)
  assert.match(text, /^postern_controller_reconcile_total\{controller="tor",result="success"\} 0$/m)
  assert.match(text, /^process_resident_memory_bytes \d/m)

  operator.child.kill('SIGTERM')
  assert.equal(await operator.exit, 0, operator.output())
  assert.equal(operator.lines.length, operator.output().trim().split('\n').length, operator.output())
  for (const line of operator.lines) {
    assert.match(line.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.match(line.level, /^(debug|info|warn|error)$/)
    assert.equal(typeof line.msg, 'string')
  }
  assert.equal(operator.lines[0]!.msg, 'operator starts')
  assert.equal(operator.lines.at(-1)!.msg, 'operator has stopped')
})

test('what keeps it from starting is said with its remedy, and exits with 2', async (t) => {
  const config = kubeconfig(t, await apiServer(t))
  const taken = createTcpServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  t.after(() => taken.close())
  const port = (taken.address() as AddressInfo).port
  const image = ['--tor-image', 'x']
  const cases: [string[], RegExp][] = [
    [[], /^postern: --tor-image \(POSTERN_TOR_IMAGE\): is required/],
    [[...image, '--kubeconfig', '/does/not/exist'], /^postern: no kubeconfig at \/does\/not\/exist/],
    [[...image, '--kubeconfig', config, '--context', 'other'], /^postern: .*there is no 'other'/],
    [
      [...image, '--kubeconfig', config, '--metrics-address', 'off', '--health-address', `127.0.0.1:${port}`],
      /^postern: --health-address \(POSTERN_HEALTH_ADDRESS\): cannot listen on 127\.0\.0\.1:\d+ .*EADDRINUSE.*: choose another address/,
    ],
  ]
  await Promise.all(
    cases.map(async ([words, message]) => {
      const operator = start(t, words)
      assert.equal(await operator.exit, 2, operator.output())
      assert.match(operator.output(), message)
    }),
  )
})
