import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { dialTcp } from './dial.ts'
import { listen, type RelayListener, type RelayOptions } from './listener.ts'
import { type Backend, type Client, dialIn, observe, serve, until } from './testing.ts'

interface Bed {
  relay: RelayListener
  backend: Backend
  client: Client
  /** The backend's end of the connection. */
  far: Client
}

async function bed(
  t: TestContext,
  options: Partial<RelayOptions> = {},
  onSocket: (s: Socket) => void = () => {},
): Promise<Bed> {
  const backend = await serve(t, onSocket)
  const relay = await listen({
    address: { host: '127.0.0.1', port: 0 },
    dial: dialTcp(() => [backend]),
    ...options,
  })
  t.after(() => relay.close())
  const client = dialIn(t, relay.address)
  await until('the connection at the backend', () => backend.sockets.length === 1)
  return { relay, backend, client, far: observe(backend.sockets[0]!) }
}

const LONG = 3_600_000

test('bytes go both ways and are counted', async (t) => {
  const { relay, client, far } = await bed(t)
  client.socket.write('question')
  await until('the question', () => far.text() === 'question', far.text)
  far.socket.write('the answer')
  await until('the answer', () => client.text() === 'the answer', client.text)
  assert.deepEqual([relay.counters.bytesIn, relay.counters.bytesOut, relay.counters.active], [8, 10, 1])
  client.socket.end()
  far.socket.end()
  await until('the end', () => relay.counters.active === 0)
  assert.deepEqual([relay.counters.bytesIn, relay.counters.bytesOut], [8, 10])
})

test('plain TCP: an end of file is passed on as a half-close, either way', async (t) => {
  const { client, far } = await bed(t, { halfCloseLimitMs: 1, clientEndLimitMs: 1 })
  client.socket.end('all of it')
  await until('the end of the question', () => far.ended)
  assert.equal(far.text(), 'all of it')
  far.socket.write('late ')
  await until('an answer after the end', () => client.text() === 'late ', client.text)
  far.socket.end('answer')
  await until('the end of the answer', () => client.ended)
  assert.equal(client.text(), 'late answer')
  await until('both closed', () => client.closed && far.closed)
})

test('plain TCP: a server that ends first can still be written to', async (t) => {
  const { client, far } = await bed(t)
  far.socket.end('bye')
  await until('the end', () => client.ended)
  client.socket.write('one more')
  await until('what came after it', () => far.text() === 'one more', far.text)
  client.socket.end()
  await until('both closed', () => client.closed && far.closed)
})

test('an upstream without half-close never sees the client end before its answer is complete', async (t) => {
  const { client, far } = await bed(t, {
    halfClose: { client: true, upstream: false },
    halfCloseLimitMs: LONG,
  })
  client.socket.end('question')
  await until('the question', () => far.text() === 'question', far.text)
  far.socket.write('first part, ')
  await until('the first part', () => client.text() !== '')
  assert.equal(far.ended, false)
  far.socket.end('last part')
  await until('the answer and its end', () => client.ended && far.ended)
  assert.equal(client.text(), 'first part, last part')
})

test('an upstream without half-close is ended when it stays quiet for the limit', async (t) => {
  const { client, far } = await bed(t, { halfClose: { client: true, upstream: false }, halfCloseLimitMs: 1 })
  client.socket.end('question')
  await until('both ended', () => far.ended && client.ended)
  assert.equal(far.text(), 'question')
})

test('the end of an upstream without half-close ends the client at once', async (t) => {
  const { client, far, relay } = await bed(t, {
    halfClose: { client: true, upstream: false },
    halfCloseLimitMs: LONG,
  })
  far.socket.end('whole answer')
  await until('both ended', () => client.ended && far.ended)
  assert.equal(client.text(), 'whole answer')
  client.socket.end()
  await until('nothing left', () => relay.counters.active === 0)
})

test('a client without half-close: a quiet one is ended soon after the upstream', async (t) => {
  const { client, far } = await bed(t, { halfClose: { client: false, upstream: true }, clientEndLimitMs: 1 })
  client.socket.write('GET / HTTP/1.0\r\n\r\n')
  await until('the request', () => far.text() !== '')
  far.socket.end('page')
  await until('the page and its end', () => client.ended && far.ended)
  assert.equal(client.text(), 'page')
})

test('a client without half-close: its upload goes on after the upstream has ended', async (t) => {
  const { client, far } = await bed(t, {
    halfClose: { client: false, upstream: true },
    clientEndLimitMs: LONG,
  })
  far.socket.end('early answer')
  await until('the answer', () => client.text() === 'early answer', client.text)
  client.socket.write('upload')
  await until('the upload', () => far.text() === 'upload', far.text)
  assert.equal(client.ended, false)
  client.socket.end()
  await until('both ended', () => client.ended && far.ended)
})

test('the end of a client without half-close is the end of all; its last bytes arrive', async (t) => {
  const { client, far } = await bed(t, { halfClose: { client: false, upstream: true } })
  client.socket.end('last words')
  await until('both ended', () => client.ended && far.ended)
  assert.equal(far.text(), 'last words')
})

test('a reset upstream ends the client, which still gets what came before', async (t) => {
  const { client, far, relay } = await bed(t)
  far.socket.write('before')
  await until('the bytes before', () => client.text() === 'before', client.text)
  far.socket.resetAndDestroy()
  await until('the end', () => client.ended)
  client.socket.end()
  await until('nothing left', () => relay.counters.active === 0)
})

test('a reset client ends the upstream', async (t) => {
  const { client, far, relay } = await bed(t)
  client.socket.write('x')
  await until('a byte', () => far.text() === 'x')
  client.socket.resetAndDestroy()
  await until('the end at the backend', () => far.ended || far.closed)
  far.socket.end()
  await until('nothing left', () => relay.counters.active === 0)
})

test('a peer that never closes after the end is cut', async (t) => {
  const { client, far, relay } = await bed(t, { lingerMs: 1 })
  client.socket.resetAndDestroy()
  await until('the end at the backend', () => far.ended || far.closed)
  // The backend keeps its side open (allowHalfOpen); the relay must not wait for ever.
  await until(
    'nothing left',
    () => relay.counters.active === 0,
    () => relay.counters.active,
  )
})

test('a quiet connection is cut at the idle limit', async (t) => {
  const { client, far, relay } = await bed(t, { idleTimeoutMs: 1 })
  await until('both over', () => (client.ended || client.closed) && (far.ended || far.closed))
  await until('nothing left', () => relay.counters.active === 0)
})

test('a slow reader holds the sender back, and every byte arrives', async (t) => {
  const { client, far } = await bed(t)
  client.socket.pause()
  const block = Buffer.alloc(1 << 20, 'abcdefgh')
  let flushed = 0
  const blocks = 24
  for (let i = 0; i < blocks; i++) far.socket.write(block, () => (flushed += 1))
  far.socket.end()
  // The kernel's buffers on both hops take some; the relay itself must not take the rest.
  await settled(() => flushed)
  assert.ok(flushed < blocks, `${flushed} MiB were taken from the sender while nobody read`)
  client.socket.resume()
  await until(
    'all bytes',
    () => client.ended,
    () => client.text().length,
  )
  assert.equal(client.text().length, blocks << 20)
})

test("many connections with halting readers never get one another's bytes", async (t) => {
  const sums = new Map<string, string>()
  const backend = await serve(t, async (socket) => {
    const { digest, first } = await drink(socket)
    sums.set(first, digest)
    const answer = randomBytes(2 << 20)
    sums.set(`${first} answer`, hash(answer))
    socket.end(answer)
  })
  const relay = await listen({ address: { host: '127.0.0.1', port: 0 }, dial: dialTcp(() => [backend]) })
  t.after(() => relay.close())
  const one = async (): Promise<void> => {
    const sent = randomBytes(3 << 20)
    const { socket } = dialIn(t, relay.address)
    socket.removeAllListeners('data').pause()
    // Pieces of every size: some fit into the kernel's buffers at once, some wait, some are copied behind others.
    for (let at = 0, size = 1; at < sent.length; at += size, size = ((size * 7) % 300_007) + 1) {
      if (!socket.write(sent.subarray(at, at + size)))
        await new Promise((resolve) => socket.once('drain', resolve))
    }
    socket.end()
    const answer = await drink(socket)
    const first = sent.subarray(0, 16).toString('hex')
    assert.equal(sums.get(first), hash(sent))
    assert.equal(sums.get(`${first} answer`), answer.digest)
  }
  await Promise.all(Array.from({ length: 12 }, one))
})

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Reads to the end, with a halt after every bit. */
async function drink(socket: Socket): Promise<{ digest: string; first: string }> {
  const chunks: Buffer[] = []
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk)
    await new Promise((resolve) => setImmediate(resolve))
  }
  const all = Buffer.concat(chunks)
  return { digest: hash(all), first: all.subarray(0, 16).toString('hex') }
}

/** Waits until a value has stopped to change. */
async function settled(value: () => number): Promise<void> {
  let last = -1
  let same = 0
  await until('a value at rest', () => {
    same = value() === last ? same + 1 : 0
    last = value()
    return same >= 40
  })
}
