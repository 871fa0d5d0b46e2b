import assert from 'node:assert/strict'
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { PosternError } from '../core/errors.ts'
import { type Dial, dialTcp, dialUnix, formatAddress } from './dial.ts'
import { listen } from './listener.ts'
import { dialIn, serve, tempFolder, until } from './testing.ts'

const LOOPBACK = { host: '127.0.0.1', port: 0 }
const never: Dial = (_client, signal) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

function says(text: string): (socket: Socket) => void {
  return (socket) => socket.end(text)
}

test('listens on a unix socket, over a stale one, and takes it away at the end', async (t) => {
  const path = join(tempFolder(t), 'web')
  const backend = await serve(t, says('hello'))
  // What a killed process leaves behind: a socket file that nobody listens on.
  const left = await listen({ address: { path: `${path}.old` }, dial: never })
  renameSync(`${path}.old`, path)
  await left.close()
  assert.ok(existsSync(path))
  const relay = await listen({ address: { path }, dial: dialTcp(() => [backend]) })
  assert.deepEqual(relay.address, { path })
  const client = dialIn(t, { path })
  await until('the answer', () => client.ended)
  assert.equal(client.text(), 'hello')
  client.socket.end()
  await until('nothing left', () => relay.counters.active === 0)
  await relay.close()
  assert.equal(existsSync(path), false)
})

test('what cannot be listened on is refused with the reason and a remedy', async (t) => {
  const folder = tempFolder(t)
  const refused = (address: { path: string } | { host: string; port: number }, message: RegExp) =>
    assert.rejects(listen({ address, dial: never }), (error) => {
      assert.ok(error instanceof PosternError)
      assert.equal(error.code, 'ListenFailed')
      assert.match(error.message, message)
      return true
    })
  await refused({ path: join(folder, 'x'.repeat(108)) }, /bytes.*107.*shorter folder/)
  writeFileSync(join(folder, 'file'), 'precious')
  await refused({ path: join(folder, 'file') }, /no socket/)
  await refused({ path: join(folder, 'none', 'x') }, /ENOENT.*folder/)
  await serve(t, () => {}, join(folder, 'live'))
  await refused({ path: join(folder, 'live') }, /another process/)
  const taken = await serve(t, () => {})
  await refused(
    { host: taken.host, port: taken.port },
    new RegExp(`127.0.0.1:${taken.port} \\(EADDRINUSE\\)`),
  )
})

test('endpoints are dialled in turn, and the next one when one fails', async (t) => {
  const gone = await serve(t, () => {})
  await new Promise((resolve) => gone.server.close(resolve))
  const [a, b] = [await serve(t, says('a')), await serve(t, says('b'))]
  const relay = await listen({ address: LOOPBACK, dial: dialTcp(() => [a, gone, b]) })
  t.after(() => relay.close())
  const heard: string[] = []
  for (let i = 0; i < 3; i++) {
    const client = dialIn(t, relay.address)
    await until('an answer', () => client.ended)
    heard.push(client.text())
  }
  assert.deepEqual(heard, ['a', 'b', 'b'])
})

test('a client without a way through is reset; the error names the endpoints', async (t) => {
  const gone = await serve(t, () => {})
  await new Promise((resolve) => gone.server.close(resolve))
  const errors: unknown[] = []
  let dialed = 0
  const relay = await listen({
    address: LOOPBACK,
    dial: dialTcp(() => [gone]),
    onDialError: (error) => errors.push(error),
    onDialed: () => (dialed += 1),
  })
  t.after(() => relay.close())
  const client = dialIn(t, relay.address)
  await until('the reset', () => client.closed)
  assert.equal(client.error?.code, 'ECONNRESET')
  const [error] = errors
  assert.ok(error instanceof PosternError && error.code === 'DialFailed')
  assert.ok(error.message.includes(`127.0.0.1:${gone.port} (ECONNREFUSED)`), error.message)
  assert.deepEqual(
    [relay.counters.accepted, relay.counters.dialErrors, relay.counters.active, dialed],
    [1, 1, 0, 0],
  )
})

test('no endpoints at all, a missing unix socket and no answer are dial errors, too', async (t) => {
  const { signal } = new AbortController()
  const client = undefined as unknown as Socket
  await assert.rejects(dialTcp(() => [])(client, signal), { code: 'DialFailed', message: /no endpoint/ })
  const path = join(tempFolder(t), 'none')
  await assert.rejects(dialUnix(path)(client, signal), { code: 'DialFailed', message: /none \(ENOENT\)/ })
  // A port of the discard prefix never answers where it is routed, and is unreachable elsewhere.
  const dial = dialTcp(() => [{ host: '192.0.2.1', port: 9 }], { timeoutMs: 30 })
  await assert.rejects(dial(client, signal), { code: 'DialFailed', message: /192\.0\.2\.1:9/ })
})

test('setDial is for new connections; the old ones go on', async (t) => {
  const [old, next] = [await serve(t, (s) => s.pipe(s)), await serve(t, says('next'))]
  const relay = await listen({ address: LOOPBACK, dial: dialTcp(() => [old]) })
  t.after(() => relay.close())
  const first = dialIn(t, relay.address)
  first.socket.write('1')
  await until('the echo', () => first.text() === '1', first.text)
  relay.setDial(dialTcp(() => [next]))
  const second = dialIn(t, relay.address)
  await until('the new backend', () => second.text() === 'next', second.text)
  first.socket.write('2')
  await until('the echo again', () => first.text() === '12', first.text)
})

test('more than maxConnections are refused, and room comes back', async (t) => {
  const backend = await serve(t, (s) => s.pipe(s))
  const relay = await listen({ address: LOOPBACK, dial: dialTcp(() => [backend]), maxConnections: 1 })
  t.after(() => relay.close())
  const first = dialIn(t, relay.address)
  await until('the first', () => relay.counters.active === 1)
  const second = dialIn(t, relay.address)
  await until('the refusal', () => second.closed)
  assert.equal(relay.counters.refused, 1)
  first.socket.end()
  await until('room', () => relay.counters.active === 0)
  const third = dialIn(t, relay.address)
  third.socket.write('x')
  await until('the echo', () => third.text() === 'x', third.text)
})

test('close cuts what runs and what is being dialled', async (t) => {
  const backend = await serve(t, (s) => s.pipe(s))
  const errors: unknown[] = []
  const relay = await listen({
    address: LOOPBACK,
    dial: dialTcp(() => [backend]),
    onDialError: (e) => errors.push(e),
  })
  const running = dialIn(t, relay.address)
  running.socket.write('x')
  await until('the echo', () => running.text() === 'x')
  relay.setDial(never)
  const dialling = dialIn(t, relay.address)
  await until('both', () => relay.counters.active === 2)
  await relay.close()
  await until('both over', () => (running.closed || running.ended) && (dialling.closed || dialling.ended))
  assert.deepEqual([relay.counters.active, relay.counters.dialErrors, errors.length], [0, 0, 0])
  const late = connect({ ...(relay.address as { host: string; port: number }) })
  const error = await new Promise<NodeJS.ErrnoException>((resolve) => late.once('error', resolve))
  assert.equal(error.code, 'ECONNREFUSED')
})

test('close with grace lets a connection end by itself', async (t) => {
  const backend = await serve(t, (s) => s.pipe(s))
  const relay = await listen({ address: LOOPBACK, dial: dialTcp(() => [backend]) })
  const client = dialIn(t, relay.address)
  client.socket.write('1')
  await until('the echo', () => client.text() === '1')
  const closing = relay.close({ graceMs: 3_600_000 })
  client.socket.end('2')
  await until('the rest', () => client.ended)
  assert.equal(client.text(), '12')
  await closing
  await relay.closed
})

test('an address is written as people write it', () => {
  assert.equal(formatAddress({ host: '::1', port: 80 }), '[::1]:80')
  assert.equal(formatAddress({ host: 'a', port: 80 }), 'a:80')
  assert.equal(formatAddress({ path: '/run/x' }), '/run/x')
})
