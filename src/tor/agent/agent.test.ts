import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { SILENT } from '../../core/logger.ts'
import { TOPOLOGY_FILE, type TorReport, type TorTopology } from '../contract.ts'
import { ControlClient } from '../control/client.ts'
import { generateOnionKey, type OnionKey } from '../onion/key.ts'
import { TorAgent, type TorAgentOptions } from './agent.ts'

const TOR = '/usr/bin/tor'
const skip = existsSync(TOR) ? false : 'tor is not installed: apt-get install tor'

let base: string
let agent: TorAgent | undefined
const cleanup: (() => unknown)[] = []

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), 'ta-'))
  for (const folder of ['topology', 'keys']) await mkdir(join(base, folder))
})
afterEach(async () => {
  await agent?.close()
  agent = undefined
  for (const undo of cleanup.splice(0)) await undo()
  rmSync(base, { recursive: true, force: true })
})

async function until<T>(what: string, look: () => T | Promise<T>, limitMs = 30_000): Promise<NonNullable<T>> {
  const end = performance.now() + limitMs
  for (;;) {
    const found = await look()
    if (found) return found as NonNullable<T>
    if (performance.now() > end) {
      assert.fail(`not within ${limitMs} ms: ${what}; report: ${JSON.stringify(agent?.report, null, 1)}`)
    }
    await pause(20)
  }
}

function topologyOf(keys: Record<string, OnionKey>, more: Partial<TorTopology> = {}): TorTopology {
  return {
    version: 1,
    daemon: { name: 'tor', namespace: 'shop', logLevel: 'notice', options: {} },
    onions: Object.entries(keys).map(([name, { address }], since) => ({
      name,
      address,
      since,
      ports: [{ virtualPort: 80, endpoints: [] }],
    })),
    proxies: [],
    ...more,
  }
}

async function writeTopology(topology: TorTopology | string): Promise<string> {
  const text = typeof topology === 'string' ? topology : JSON.stringify(topology)
  await writeFile(join(base, 'topology', '.new'), text)
  await rename(join(base, 'topology', '.new'), join(base, 'topology', TOPOLOGY_FILE))
  return createHash('sha256').update(text).digest('hex')
}

async function writeKeys(keys: Record<string, OnionKey>): Promise<void> {
  for (const [name, { secret }] of Object.entries(keys)) {
    await writeFile(join(base, 'keys', '.new'), secret)
    await rename(join(base, 'keys', '.new'), join(base, 'keys', `${name}.key`))
  }
}

async function start(more: Partial<TorAgentOptions> = {}): Promise<TorAgent> {
  agent = await TorAgent.start({
    topology: join(base, 'topology'),
    keys: join(base, 'keys'),
    data: join(base, 'data'),
    run: join(base, 'run'),
    address: '127.0.0.1',
    tor: TOR,
    log: SILENT,
    network: false,
    reportPort: 0,
    metricsPort: 0,
    ...more,
  })
  return agent
}

async function control(): Promise<ControlClient> {
  const client = await ControlClient.connect({ path: join(base, 'run', 'control') })
  await client.authenticate()
  cleanup.push(() => client.close())
  return client
}

async function detached(client: ControlClient): Promise<string[]> {
  const text = (await client.getInfo('onions/detached'))['onions/detached'] ?? ''
  return text
    .split(/\s+/)
    .filter((line) => line !== '')
    .sort()
}

function some(...names: string[]): Record<string, OnionKey> {
  return Object.fromEntries(names.map((name) => [name, generateOnionKey()]))
}

const addresses = (keys: Record<string, OnionKey>): string[] =>
  Object.values(keys)
    .map(({ address }) => address)
    .sort()
const states = (report: Omit<TorReport, 'revision'>): string[] =>
  report.onions.map(({ name, state, reason }) => `${name} ${state} ${reason ?? ''}`.trim())
const allAdded = (count: number) => (): boolean =>
  agent!.report.onions.length === count && agent!.report.onions.every(({ state }) => state === 'added')
const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

test('adds what has a key, and says of the others why not; keys that come later are used', {
  skip,
}, async () => {
  const keys = some('a', 'b', 'c', 'd')
  const applied = await writeTopology(topologyOf(keys))
  // c has the key of another address, d bytes that are no key.
  await writeKeys({
    a: keys.a!,
    c: generateOnionKey(),
    d: { ...keys.d!, secret: new Uint8Array(64).fill(255) },
  })
  await start()
  await until('a is added', () => agent!.report.onions[0]?.state === 'added')
  assert.deepEqual(states(agent!.report), [
    'a added UploadPending',
    'b failed KeyMissing',
    'c failed AddressMismatch',
    'd failed KeyInvalid',
  ])
  assert.equal(agent!.report.applied, applied)
  assert.equal(agent!.report.tor.running, true)
  assert.match(agent!.report.tor.version ?? '', /^0\.4\./)
  const client = await control()
  assert.deepEqual(await detached(client), [keys.a!.address])
  await writeKeys({ b: keys.b!, c: keys.c! })
  await until('b and c are added', () =>
    agent!.report.onions.slice(0, 3).every(({ state }) => state === 'added'),
  )
  assert.deepEqual(await detached(client), addresses({ a: keys.a!, b: keys.b!, c: keys.c! }))
})

test('removes what is gone, and leaves the process and the others alone', { skip }, async () => {
  const keys = some('a', 'b')
  await writeTopology(topologyOf(keys))
  await writeKeys(keys)
  await start()
  await until('both are added', allAdded(2))
  const { pid } = agent!.report.tor
  await writeTopology(topologyOf({ b: keys.b! }))
  const client = await control()
  await until('a is gone', async () => (await detached(client)).length === 1)
  assert.deepEqual(await detached(client), [keys.b!.address])
  assert.equal(agent!.report.tor.pid, pid)
})

test('a kill -9 of tor brings all onions back, ten at a time before the network', { skip }, async () => {
  const keys = some(...Array.from({ length: 12 }, (_, i) => `o${String(i).padStart(2, '0')}`))
  await writeTopology(topologyOf(keys))
  await writeKeys(keys)
  await start()
  const ten = () => states(agent!.report).filter((state) => state.includes('added')).length === 10
  await until('ten are added', ten)
  assert.equal(states(agent!.report)[11], 'o11 waiting Queued')
  const pid = agent!.report.tor.pid!
  process.kill(pid, 'SIGKILL')
  await until('another tor', () => agent!.report.tor.starts === 2 && ten())
  assert.notEqual(agent!.report.tor.pid, pid)
  const oldest = Object.fromEntries(Object.entries(keys).slice(0, 10))
  assert.deepEqual(await detached(await control()), addresses(oldest))
})

test('tor dies with a killed agent, and the next agent starts over', { skip }, async () => {
  const keys = some('a')
  await writeTopology(topologyOf(keys))
  await writeKeys(keys)
  const script = fileURLToPath(new URL('./main.ts', import.meta.url))
  const folders = ['topology', 'keys', 'data', 'run'].flatMap((name) => [`--${name}`, join(base, name)])
  // An address of its own, since the ports of a pod are fixed.
  const args = [script, ...folders, '--address', '127.77.250.7', '--tor', TOR]
  await writeTopology({
    ...topologyOf(keys),
    daemon: { ...topologyOf({}).daemon, options: { DirAuthority: NOWHERE } },
  })
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  cleanup.push(() => child.kill('SIGKILL'))
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  const pid = Number(
    await until('its tor has the onion', () =>
      output.includes('onion added') ? /"pid":(\d+),"version"/.exec(output)?.[1] : undefined,
    ).catch((error) => assert.fail(`${error.message}\n${output}`)),
  )
  assert.ok(alive(pid))
  assert.ok(!output.includes(Buffer.from(keys.a!.secret).toString('base64').slice(0, 20)))
  child.kill('SIGKILL')
  await until('tor is gone', () => !alive(pid))
  await writeTopology(topologyOf(keys))
  await start()
  await until('a is added', allAdded(1))
})

/** Options of a network that does not exist, so that nothing is contacted. */
const NOWHERE = `nowhere orport=1 no-v2 v3ident=${'A'.repeat(40)} 127.0.0.1:1 ${'B'.repeat(40)}`

test('endpoints change without a word to tor, and connections reach them', { skip }, async () => {
  const keys = some('a')
  const servers = await Promise.all(['one', 'two'].map(answering))
  const to = (server: Server) => [{ host: '127.0.0.1', port: (server.address() as { port: number }).port }]
  const at = (endpoints: { host: string; port: number }[]) => {
    const topology = topologyOf(keys)
    topology.onions[0]!.ports[0]!.endpoints = endpoints
    return topology
  }
  await writeTopology(at([{ host: '127.0.0.1', port: 1 }]))
  await writeKeys(keys)
  await start()
  await until('a is added', allAdded(1))
  const client = await control()
  const descriptors: string[] = []
  await client.setEvents(['HS_DESC'])
  client.onEvent((event) => descriptors.push(event.type))
  const socket = join(
    base,
    'run',
    'o',
    createHash('sha256').update(`0:${keys.a!.address}:80`).digest('hex').slice(0, 8),
  )

  assert.equal(await talk(socket), '')
  await until('the error is told', () => agent!.report.onions[0]?.backendError?.includes('127.0.0.1:1'))
  for (const [index, server] of servers.entries()) {
    const applied = await writeTopology(at(to(server)))
    await until('it is in force', () => agent!.report.applied === applied)
    assert.equal(await talk(socket), ['one', 'two'][index])
  }
  await until('the error is forgotten', () => agent!.report.onions[0]?.backendError === undefined)
  assert.deepEqual(descriptors, [], 'tor made no new descriptor')
  assert.equal(agent!.report.tor.starts, 1)
})

async function answering(text: string): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => {}).end(text))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanup.push(() => server.close())
  return server
}

function talk(path: string): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const socket = connect({ path })
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(text))
  })
}

test('other virtual ports replace that onion only', { skip }, async () => {
  const keys = some('a', 'b')
  await writeTopology(topologyOf(keys))
  await writeKeys(keys)
  await start()
  await until('both are added', allAdded(2))
  const topology = topologyOf(keys)
  topology.onions[0]!.ports.push({ virtualPort: 443, endpoints: [] })
  const client = await control()
  const created = new Set<string>()
  await client.setEvents(['HS_DESC'])
  client.onEvent((event) => event.type === 'HS_DESC' && created.add(event.address))
  await writeTopology(topology)
  const name = createHash('sha256').update(`0:${keys.a!.address}:443`).digest('hex').slice(0, 8)
  await until('the socket of the new port', () => existsSync(join(base, 'run', 'o', name)))
  await until('it is back', allAdded(2))
  assert.deepEqual(await detached(client), addresses(keys))
  assert.ok(!created.has(keys.b!.address))
})

test('a document that cannot be used changes nothing and is told', { skip }, async () => {
  const keys = some('a')
  const text = JSON.stringify(topologyOf(keys))
  const applied = await writeTopology(text)
  await writeKeys(keys)
  await start()
  await until('a is added', allAdded(1))
  for (const [bad, says] of [
    [text.slice(0, -20), /whole JSON/],
    [JSON.stringify({ ...topologyOf({}), version: 2 }), /version 2/],
  ] as const) {
    await writeTopology(bad)
    await until(`${says}`, () => says.test(agent!.report.rejected ?? ''))
    assert.equal(agent!.report.applied, applied)
    assert.deepEqual(await detached(await control()), [keys.a!.address])
  }
  await writeTopology(text)
  await until('it is forgotten', () => !agent!.report.rejected?.includes('version'))
})

test('tor is never started without the options it was given; later ones change while it runs', {
  skip,
}, async () => {
  const keys = some('a')
  const options = (values: Record<string, string>): TorTopology => {
    const topology = topologyOf(keys)
    topology.daemon.options = values
    return topology
  }
  await writeKeys(keys)
  await writeTopology(options({ NoSuchOption: '1' }))
  await start()
  await until('the refusal of the start', () => agent!.report.tor.reason === 'OptionsRefused')
  assert.match(agent!.report.tor.message ?? '', /NoSuchOption/)
  assert.equal(agent!.report.tor.starts, 0)
  await writeTopology(options({}))
  await until('a is added once they are right', allAdded(1))
  assert.equal(agent!.report.tor.reason, undefined)
  const client = await control()
  await writeTopology(options({ CircuitBuildTimeout: '77', ControlPort: '9051' }))
  await until(
    'it is set',
    async () => (await client.getConf('CircuitBuildTimeout')).CircuitBuildTimeout?.[0] === '77',
  )
  await until('the rest is told', () => /option ControlPort is left out/.test(agent!.report.rejected ?? ''))
  await writeTopology(options({ CircuitBuildTimeout: 'soon' }))
  await until('the refusal', () => /SETCONF/.test(agent!.report.rejected ?? ''))
  assert.equal((await client.getConf('CircuitBuildTimeout')).CircuitBuildTimeout?.[0], '77')
  await writeTopology({ ...options({}), daemon: { ...options({}).daemon, logLevel: 'warn' } })
  await until('the default again', async () => {
    const { CircuitBuildTimeout, Log } = await client.getConf('CircuitBuildTimeout', 'Log')
    return CircuitBuildTimeout?.[0] !== '77' && Log?.[0] === 'warn stdout'
  })
  assert.equal(agent!.report.tor.starts, 1)
})

test('a tor that is missing or too old is told with what to do', { skip: skip }, async () => {
  await writeTopology(topologyOf({}))
  const tor = join(base, 'tor')
  await start({ tor })
  await until('missing', () => agent!.report.tor.reason === 'TorMissing')
  assert.match(agent!.report.tor.message ?? '', /apt-get install tor/)
  await writeFile(tor, '#!/bin/sh\necho "Tor version 0.4.7.8."\n', { mode: 0o755 })
  await until('too old', () => agent!.report.tor.reason === 'TorTooOld')
  await rename(tor, `${tor}.old`)
  await writeFile(tor, `#!/bin/sh\nexec ${TOR} "$@"\n`, { mode: 0o755 })
  await until('the right one', () => agent!.report.tor.running && agent!.report.tor.reason === undefined)
})
