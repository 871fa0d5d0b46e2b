import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, test } from 'node:test'
import { page, staysOpen } from './probe-visit.ts'

let server: Server | undefined
afterEach(() => server?.close())

/** A stream to a backend that does this with it. */
async function stream(backend: (socket: Socket) => void): Promise<Socket> {
  server = createServer((socket) => backend(socket.on('error', () => {}))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(socket, 'connect')
  socket.pause()
  return socket.on('error', () => {})
}

const signal = new AbortController().signal

test('a stream that stays open, or brings a byte and ends, has somebody behind it', async () => {
  const quiet = await stream((socket) => socket.resume())
  await staysOpen(quiet, 50, signal)
  quiet.destroy()
  server?.close()
  const brief = await stream((socket) => socket.end('220 hello\r\n'))
  await staysOpen(brief, 5_000, signal)
  brief.destroy()
})

test('a stream that ends without a byte has nobody behind it', async () => {
  const hungUp = await stream((socket) => socket.destroy())
  await assert.rejects(staysOpen(hungUp, 5_000, signal), { reason: 'BackendClosed' })
  server?.close()
  const reset = await stream((socket) => setTimeout(() => socket.resetAndDestroy(), 20))
  await assert.rejects(staysOpen(reset, 5_000, signal), { reason: 'BackendClosed' })
})

/** Answers a request, once it is there in whole, and notes it. */
function answering(answer: string, requests: string[] = []): (socket: Socket) => void {
  return (socket) => {
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
      if (!text.includes('\r\n\r\n')) return
      requests.push(text)
      socket.end(answer)
    })
  }
}
const ask = async (backend: (socket: Socket) => void, timeoutMs = 5_000): Promise<void> => {
  const socket = await stream(backend)
  try {
    await page(socket, { host: 'x.onion', path: '/up?a=b', timeoutMs, signal })
  } finally {
    socket.destroy()
    server?.close()
  }
}

test('a page that answers is asked for as a visitor does, whatever it says below 500', async () => {
  const requests: string[] = []
  for (const status of ['200 OK', '302 Found', '404 Not Found', '403']) {
    await ask(answering(`HTTP/1.1 ${status}\r\n\r\n`, requests))
  }
  assert.match(requests[0]!, /^GET \/up\?a=b HTTP\/1\.1\r\nHost: x\.onion\r\n/)
})

test('a page is no good that is late, cut short, an error of the server, or no page', async () => {
  const bad: [answer: (socket: Socket) => void, reason: string, says: RegExp][] = [
    [answering('HTTP/1.1 503 Unavailable\r\n\r\n'), 'PageFailed', /503/],
    [answering('HTTP/1.1 2'), 'PageFailed', /cut short/],
    [answering('220 mail.example ESMTP\r\n'), 'PageFailed', /no HTTP/],
    [answering('x'.repeat(20_000)), 'PageFailed', /no HTTP/],
    [(socket) => socket.end(), 'BackendClosed', /without a byte/],
  ]
  for (const [backend, reason, says] of bad) {
    await assert.rejects(ask(backend), (error: Error & { reason?: string }) => {
      assert.equal(error.reason, reason)
      assert.match(error.message, says)
      return true
    })
  }
  await assert.rejects(
    ask((socket) => socket.resume(), 50),
    /did not come within/,
  )
})

test('a look that is given up ends at once', async () => {
  const abort = new AbortController()
  const socket = await stream((one) => one.resume())
  const look = staysOpen(socket, 60_000, abort.signal)
  abort.abort(new Error('given up'))
  await assert.rejects(look, /given up/)
  socket.destroy()
})
