import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { PosternError } from '../core/errors.ts'
import { SocksError } from './socks-error.ts'
import { dialSocks5, socks5Connect } from './socks5.ts'
import { observe, serve, tempFolder, until } from './testing.ts'

/** A proxy that answers the n-th thing it gets with the n-th message, and keeps what it got. */
async function proxy(t: TestContext, answers: (number[] | 'end' | 'reset')[], path?: string) {
  const got: string[] = []
  const backend = await serve(
    t,
    (socket: Socket) => {
      let i = 0
      socket.on('data', (chunk) => {
        got.push(chunk.toString('hex'))
        const answer = answers[i++]
        if (answer === 'end') socket.end()
        else if (answer === 'reset') socket.resetAndDestroy()
        else if (answer) socket.write(Uint8Array.from(answer))
      })
    },
    path,
  )
  return { proxy: path ? { path } : { host: backend.host, port: backend.port }, got, backend }
}

const OK_V6 = [5, 0, 0, 4, ...new Array<number>(16).fill(0), 0, 0]

async function reasonOf(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt
    return 'connected'
  } catch (error) {
    assert.ok(error instanceof SocksError, String(error))
    assert.equal(error.code, 'SocksFailed')
    return error.reason
  }
}

test('greeting, sign-in and request are sent as the RFCs say, over a unix socket', async (t) => {
  const path = join(tempFolder(t), 's')
  const p = await proxy(t, [[5, 2], [1, 0], OK_V6], path)
  const socket = await socks5Connect({
    proxy: p.proxy,
    host: 'ab.onion',
    port: 443,
    username: 'u',
    password: 'pw',
  })
  t.after(() => socket.destroy())
  assert.deepEqual(p.got, [
    '050102',
    '010175027077',
    `0501000308${Buffer.from('ab.onion').toString('hex')}01bb`,
  ])
})

test('what comes right behind the reply stays in the stream, its end included', async (t) => {
  const p = await proxy(t, [
    [5, 0],
    [...OK_V6, 0x68, 0x69],
  ])
  const socket = await socks5Connect({ proxy: p.proxy, host: 'x', port: 1 })
  t.after(() => socket.destroy())
  p.backend.sockets[0]!.end(' there')
  const seen = observe(socket)
  socket.resume()
  await until('the whole text and its end', () => seen.ended, seen.text)
  assert.equal(seen.text(), 'hi there')
})

test('a refusal carries its code, its reason and the next step', async (t) => {
  const p = await proxy(t, [
    [5, 0],
    [5, 0xf4, 0, 1, 0, 0, 0, 0, 0, 0],
  ])
  await assert.rejects(socks5Connect({ proxy: p.proxy, host: 'x.onion', port: 80 }), (error) => {
    assert.ok(error instanceof SocksError && error instanceof PosternError)
    assert.equal(error.reply, 0xf4)
    assert.equal(error.reason, 'ClientAuthMissing')
    assert.match(error.message, /x\.onion:80.*client key/)
    return true
  })
})

test('each way in which a proxy fails has a reason of its own', async (t) => {
  const at = (p: { proxy: { path: string } | { host: string; port: number } }) => ({
    proxy: p.proxy,
    host: 'x',
    port: 1,
  })
  assert.equal(await reasonOf(socks5Connect(at(await proxy(t, ['end'])))), 'ProxyClosed')
  assert.equal(await reasonOf(socks5Connect(at(await proxy(t, [[5, 0], 'reset'])))), 'ProxyClosed')
  assert.equal(await reasonOf(socks5Connect(at(await proxy(t, [[0x48, 0x54]])))), 'ProtocolError')
  assert.equal(await reasonOf(socks5Connect(at(await proxy(t, [[5, 255]])))), 'AuthRejected')
  assert.equal(await reasonOf(socks5Connect({ ...at(await proxy(t, [])), timeoutMs: 50 })), 'TimedOut')
  const nowhere = { proxy: { path: join(tempFolder(t), 'none') }, host: 'x', port: 1 }
  assert.equal(await reasonOf(socks5Connect(nowhere)), 'ProxyUnreachable')
})

test('an aborted signal ends the handshake with its reason and closes the connection', async (t) => {
  const p = await proxy(t, [])
  const abort = new AbortController()
  const attempt = socks5Connect({ proxy: p.proxy, host: 'x', port: 1, signal: abort.signal })
  await until('the greeting', () => p.got.length === 1)
  const closed = observe(p.backend.sockets[0]!)
  abort.abort(new Error('enough'))
  await assert.rejects(attempt, /enough/)
  await until('the end at the proxy', () => closed.ended || closed.closed)
})

test('what fits in no request is refused before anything is dialled', async () => {
  const proxy = { path: '/nonexistent' }
  for (const wrong of [
    { host: 'x'.repeat(256) },
    { host: '' },
    { port: 0 },
    { username: '' },
    { username: 'ü'.repeat(128) },
  ]) {
    const options = { proxy, host: 'x', port: 1, ...wrong }
    assert.throws(() => dialSocks5(options), { code: 'SocksRequestInvalid' })
    await assert.rejects(socks5Connect(options), { code: 'SocksRequestInvalid' })
  }
})
