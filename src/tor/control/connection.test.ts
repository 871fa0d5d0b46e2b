import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { ControlClient } from './client.ts'
import { ControlError } from './errors.ts'

/** A control port that says what it is told to: what a real tor does not do. */
async function fakePort(
  serve: (socket: Socket) => void,
): Promise<AsyncDisposable & { client: ControlClient }> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    serve(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = await ControlClient.connect({
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
  })
  return {
    client,
    async [Symbol.asyncDispose]() {
      await client.close()
      server.close()
    },
  }
}

/** Answers each line by a function. */
function answer(reply: (line: string) => string): (socket: Socket) => void {
  return (socket) => {
    let rest = ''
    socket.on('data', (chunk) => {
      const lines = (rest + chunk).split('\r\n')
      rest = lines.pop() ?? ''
      for (const line of lines) socket.write(reply(line))
    })
  }
}

const info = '250-PROTOCOLINFO 1\r\n250-AUTH METHODS='

test('a server that speaks something else closes the connection', async () => {
  await using port = await fakePort((socket) => socket.write('HTTP/1.1 400 Bad Request\r\n'))
  const error = await port.client.closed
  assert.equal((error as { code?: string }).code, 'ControlProtocol')
  await assert.rejects(port.client.getInfo('version'), { code: 'ControlClosed', cause: error })
})

test('a reply that nobody asked for closes the connection', async () => {
  await using port = await fakePort((socket) => socket.write('250 OK\r\n'))
  assert.equal(((await port.client.closed) as { code?: string }).code, 'ControlProtocol')
})

test('an end in the middle of a message rejects the command', async () => {
  await using port = await fakePort((socket) => socket.once('data', () => socket.end('250-version=')))
  await assert.rejects(port.client.getInfo('version'), { code: 'ControlClosed' })
  assert.match((await port.client.closed)?.message ?? '', /middle of a message/)
})

test('the reply to a command that was given up does not answer the next one', async () => {
  let held = ''
  await using port = await fakePort(
    answer((line) => {
      if (line === 'GETINFO late') {
        held = '250-late=1\r\n250 OK\r\n'
        return ''
      }
      return `${held}250-soon=2\r\n250 OK\r\n`
    }),
  )
  await assert.rejects(port.client.command('GETINFO late', { timeoutMs: 1 }), { code: 'ControlTimeout' })
  assert.deepEqual(await port.client.getInfo('soon'), { soon: '2' })
})

test('a port that never answers is not waited for without a limit', async () => {
  await using port = await fakePort(() => undefined)
  const commands = Promise.allSettled(
    Array.from({ length: 1024 }, () => port.client.command('GETINFO version')),
  )
  await assert.rejects(port.client.command('GETINFO version'), { code: 'ControlBusy' })
  await port.client.close()
  for (const result of await commands) assert.equal(result.status, 'rejected')
})

test('a server that does not know the cookie, or offers nothing that is spoken, is not authenticated to', async () => {
  const cases: [string, (line: string) => string][] = [
    ['ControlAuthUnsupported', () => `${info}HASHEDPASSWORD\r\n250 OK\r\n`],
    ['ControlAuthUnsupported', () => `${info}COOKIE COOKIEFILE="/etc/hostname"\r\n250 OK\r\n`],
    ['ControlAuthUnsupported', () => '250 OK\r\n'],
    ['ControlProtocol', () => `${info}"\r\n250 OK\r\n`],
    ['ControlCookieUnreadable', () => `${info}SAFECOOKIE COOKIEFILE="/dev/zero"\r\n250 OK\r\n`],
  ]
  for (const [code, reply] of cases) {
    await using port = await fakePort(answer(reply))
    await assert.rejects(port.client.authenticate(), { code })
  }
})

test("tor's words are told without keys and without control characters", async () => {
  const secret = 'S3cr'.repeat(22)
  const words = [
    `512 Bad ED25519-V3:${secret}`,
    `512 Bad "${secret}"`,
    `512 Bad x25519:${secret.slice(0, 43)}`,
    `513 Bad Bridge obfs4 192.0.2.1:443 cert=${secret.slice(0, 70)} iat-mode=0`,
    '512 Bad \u001b[31m',
  ]
  for (const text of words) {
    await using port = await fakePort(answer(() => `${text}\r\n`))
    await assert.rejects(port.client.command(`ADD_ONION ED25519-V3:${secret}`), (error: unknown) => {
      assert.ok(error instanceof ControlError)
      const all = `${error.message} ${error.text} ${error.stack} ${JSON.stringify(error)}`
      assert.ok(!all.includes('S3cr') && !all.includes('\u001b'), all)
      assert.match(error.message, /^tor refused ADD_ONION: 51[23] Bad/)
      return true
    })
  }
})

test('a fault of one listener does not keep an event from the next, nor from the reply', async (t) => {
  await using port = await fakePort(answer(() => '650 NETWORK_LIVENESS UP\r\n250 OK\r\n'))
  const later = t.mock.method(globalThis, 'queueMicrotask', () => undefined)
  const fault = new Error('fault of a listener')
  port.client.onEvent(() => {
    throw fault
  })
  const seen: string[] = []
  port.client.onEvent((event) => seen.push(event.type))
  await port.client.command('SETEVENTS NETWORK_LIVENESS')
  assert.deepEqual(seen, ['NETWORK_LIVENESS'])
  // It is thrown where nobody catches it, so that it is not lost.
  assert.throws(later.mock.calls[0]?.arguments[0] ?? assert.fail, fault)
})
