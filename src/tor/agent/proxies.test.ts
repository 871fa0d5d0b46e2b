import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { SILENT } from '../../core/logger.ts'
import type { ProxyTarget } from '../contract.ts'
import { Proxies } from './proxies.ts'

const ONION = `${'a'.repeat(55)}d.onion`
const OTHER = `${'b'.repeat(55)}d.onion`

let folder: string
let socks: Server
let asked: { username: string; host: string; port: number }[]
let proxies: Proxies
const sockets = new Set<Socket>()

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'px-'))
  asked = []
  socks = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (data: Buffer) => answer(socket, data))
  })
  await new Promise<void>((resolve) => socks.listen(join(folder, 'socks'), resolve))
  proxies = new Proxies({
    host: '127.0.0.1',
    socks: join(folder, 'socks'),
    log: SILENT,
    onChange() {},
    retryMs: 10,
  })
})
afterEach(async () => {
  await proxies.close(0)
  for (const socket of sockets) socket.destroy()
  sockets.clear()
  socks.close()
  rmSync(folder, { recursive: true, force: true })
})

/** A SOCKS5 server that signs everybody in, says where to they are connected, and echoes what follows. */
function answer(socket: Socket & { user?: string; joined?: boolean }, data: Buffer): void {
  if (socket.joined) socket.write(data)
  else if (data[0] === 1) {
    socket.user = data.subarray(2, 2 + data[1]!).toString()
    socket.write(Buffer.from([1, 0]))
  } else if (data[2] === 2 && data.length === 3) socket.write(Buffer.from([5, 2]))
  else {
    const host = data.subarray(5, 5 + data[4]!).toString()
    const port = data.readUInt16BE(5 + data[4]!)
    asked.push({ username: socket.user ?? '', host, port })
    socket.joined = true
    socket.write(
      Buffer.concat([Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]), Buffer.from(`${host}:${port}\n`)]),
    )
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

interface Client {
  socket: Socket
  lines: string[]
  closed: boolean
}

function dial(port: number): Client {
  const client: Client = { socket: connect(port, '127.0.0.1'), lines: [], closed: false }
  client.socket.on('error', () => {})
  client.socket.on('data', (data) => client.lines.push(data.toString()))
  client.socket.on('close', () => {
    client.closed = true
  })
  sockets.add(client.socket)
  return client
}

async function until(what: string, check: () => boolean, limitMs = 10_000): Promise<void> {
  const end = performance.now() + limitMs
  while (!check()) {
    assert.ok(performance.now() < end, `not within ${limitMs} ms: ${what}`)
    await pause(5)
  }
}

const target = (name: string, listenPort: number, onion = ONION, port = 80): ProxyTarget => ({
  name,
  onion,
  port,
  listenPort,
})

test('each target has its own way into tor', async () => {
  const [one, two] = [await freePort(), await freePort()]
  await proxies.want([{ name: 'p', targets: [target('one', one), target('two', two, OTHER, 443)] }])
  const clients = [dial(one), dial(two), dial(one)]
  await until('all are connected', () => clients.every(({ lines }) => lines.length > 0))
  assert.equal(clients[1]!.lines[0], `${OTHER}:443\n`)
  const users = (host: string) => asked.filter((ask) => ask.host === host).map(({ username }) => username)
  assert.equal(new Set(users(ONION)).size, 1)
  assert.notEqual(users(ONION)[0], users(OTHER)[0])
  assert.match(users(ONION)[0]!, /^p\/one\/[0-9a-f]{24}$/)
})

test('a change touches what changed only', async () => {
  const [one, two, three] = [await freePort(), await freePort(), await freePort()]
  await proxies.want([{ name: 'p', targets: [target('one', one), target('two', two)] }])
  const [kept, cut] = [dial(one), dial(two)]
  await until('both are connected', () => kept.lines.length > 0 && cut.lines.length > 0)
  // One leads elsewhere from now on, two listens elsewhere.
  await proxies.want([{ name: 'p', targets: [target('one', one, OTHER), target('two', three)] }])
  await until('two is cut', () => cut.closed)
  kept.socket.write('still here')
  await until('one goes on', () => kept.lines.at(-1) === 'still here')
  const next = dial(one)
  await until('a new one', () => next.lines.length > 0)
  assert.equal(next.lines[0], `${OTHER}:80\n`)
})

test('targets may swap their ports', async () => {
  const [one, two] = [await freePort(), await freePort()]
  await proxies.want([{ name: 'p', targets: [target('one', one), target('two', two, OTHER)] }])
  await proxies.want([{ name: 'p', targets: [target('one', two), target('two', one, OTHER)] }])
  const client = dial(one)
  await until('connected', () => client.lines.length > 0)
  assert.equal(client.lines[0], `${OTHER}:80\n`)
  assert.equal(proxies.state('p', 'one').listening, true)
})

test('a port that is taken is told for this target, and used as soon as it is free', async () => {
  const blocker = createServer()
  await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve))
  const { port } = blocker.address() as { port: number }
  const free = await freePort()
  await proxies.want([{ name: 'p', targets: [target('one', port), target('two', free)] }])
  assert.equal(proxies.state('p', 'one').listening, false)
  assert.match(proxies.state('p', 'one').error!, /EADDRINUSE/)
  assert.equal(proxies.state('p', 'two').listening, true)
  blocker.close()
  await until('it listens', () => proxies.state('p', 'one').listening)
  assert.equal(proxies.state('p', 'one').error, undefined)
})
