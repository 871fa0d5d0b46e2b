import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, beforeEach, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { json, PlayedServer, refusal } from './server-fixture.ts'
import type { User } from './settings.ts'
import { type Call, type RequestNote, Transport, type TransportOptions } from './transport.ts'

const folder = mkdtempSync(join(tmpdir(), 'postern-transport-'))
const tokenFile = join(folder, 'token')
const CALL: Call = { what: 'GET X', method: 'GET', path: '/x' }

let server: PlayedServer
const opened: Transport[] = []

beforeEach(async () => {
  server = await PlayedServer.start((response) => json(response, {}))
})

afterEach(async () => {
  await Promise.all(opened.splice(0).map((transport) => transport.close()))
  await server.close()
})

after(() => rmSync(folder, { recursive: true }))

function transport(user: User = {}, options: Partial<TransportOptions> = {}): Transport {
  const made = new Transport(server.settings(user), { component: 'test', version: '1.2.3', ...options })
  opened.push(made)
  return made
}

/** Answers 401 to all but one token. */
function accept(token: string): void {
  server.reply = (response, { headers }) =>
    headers.authorization === `Bearer ${token}`
      ? json(response, { fine: true })
      : json(response, refusal(401, 'Unauthorized', 'Unauthorized'), 401)
}

function tokens(): (string | undefined)[] {
  return server.asked.map((asked) => asked.headers.authorization?.replace('Bearer ', ''))
}

test('a server that stands behind a path is asked there', async () => {
  const settings = server.settings()
  const made = new Transport(
    { ...settings, server: `${settings.server}/k8s/clusters/c-1` },
    { component: 'test', version: '1' },
  )
  opened.push(made)
  await made.request({ ...CALL, path: '/api/v1/namespaces?limit=1' })
  assert.equal(server.asked[0]?.path, '/k8s/clusters/c-1/api/v1/namespaces?limit=1')
})

test('a token file is read again after a minute, and what was good is kept while it is not', async () => {
  writeFileSync(tokenFile, 'first\n')
  let now = 1_000
  const made = transport({ tokenFile }, { now: () => now })
  await made.request(CALL)
  writeFileSync(tokenFile, 'second\n')
  now += 59_000
  await made.request(CALL)
  now += 1_000
  await made.request(CALL)
  writeFileSync(tokenFile, '')
  now += 60_000
  await made.request(CALL)
  assert.deepEqual(tokens(), ['first', 'first', 'second', 'second'])
})

test('a 401 reads the token file at once and is retried once with the new token', async () => {
  writeFileSync(tokenFile, 'first')
  accept('second')
  const made = transport({ tokenFile })
  await assert.rejects(made.request(CALL), {
    code: 'Forbidden',
    status: 401,
    message: /refused the token or certificate/,
  })
  // The same token again would only be refused again.
  assert.deepEqual(tokens(), ['first'])
  writeFileSync(tokenFile, 'second')
  assert.deepEqual((await made.request(CALL)).document, { fine: true })
  assert.deepEqual(tokens(), ['first', 'first', 'second'])
  accept('third')
  writeFileSync(tokenFile, 'fourth')
  await assert.rejects(made.request(CALL), { code: 'Forbidden' })
  assert.deepEqual(tokens().slice(3), ['second', 'fourth'])
})

test('a watch is retried as well', async () => {
  writeFileSync(tokenFile, 'first')
  accept('second')
  const made = transport({ tokenFile })
  await assert.rejects(made.stream(CALL, 60_000), { status: 401 })
  writeFileSync(tokenFile, 'second')
  const stream = await made.stream(CALL, 60_000)
  const chunks: Buffer[] = []
  for await (const chunk of stream.chunks) chunks.push(chunk)
  assert.equal(Buffer.concat(chunks).toString(), '{"fine":true}')
})

test('a fixed token that is refused is not tried twice, and is in no error', async () => {
  accept('other')
  await assert.rejects(transport({ token: 'hunter2' }).request(CALL), (error: Error) => {
    assert.ok(!`${error.stack} ${JSON.stringify(error)}`.includes('hunter2'))
    return true
  })
  assert.deepEqual(tokens(), ['hunter2'])
})

test('no credentials: said as such, nothing is sent', async () => {
  const missing = join(folder, 'missing')
  await assert.rejects(transport({ tokenFile: missing }).request(CALL), {
    code: 'Unavailable',
    reason: 'CredentialsUnavailable',
    message: `GET X: token file: ${missing} does not exist: put the file there, or name another one`,
  })
  assert.deepEqual(server.asked, [])
})

test('a server that stops before or within its answer is given up', async () => {
  const made = transport({}, { timeout: 100 })
  const late = {
    code: 'Unavailable',
    reason: 'TimedOut',
    message: "GET X: no whole answer within 0.1 s: check the API server's load, and try again",
  }
  server.reply = () => {}
  await assert.rejects(made.request(CALL), late)
  server.reply = (response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).write('{"half":')
  await assert.rejects(made.request(CALL), late)
  // Drops that come often enough for any idle limit.
  server.reply = (response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    const timer = setInterval(() => response.write(' '), 10)
    response.on('close', () => clearInterval(timer))
  }
  await assert.rejects(made.request(CALL), late)
})

test('a watch that outlives its time is torn down, though it still talks', async () => {
  const closed = Promise.withResolvers<void>()
  server.reply = (response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write('x')
    response.on('close', closed.resolve)
  }
  const stream = await transport().stream(CALL, 2_000)
  const chunks: string[] = []
  await assert.rejects(
    async () => {
      for await (const chunk of stream.chunks) chunks.push(chunk.toString())
    },
    { code: 'Unavailable', reason: 'TimedOut', message: /connection hung/ },
  )
  assert.deepEqual(chunks, ['x'])
  await closed.promise
})

test('an aborted call fails with the reason of its signal', async () => {
  const made = transport()
  const reason = new Error('enough')
  const asked = Promise.withResolvers<void>()
  server.reply = (response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{')
    asked.resolve()
  }
  const stop = new AbortController()
  const call = made.request({ ...CALL, signal: stop.signal })
  call.catch(() => {})
  await asked.promise
  stop.abort(reason)
  await assert.rejects(call, (error) => error === reason)
  await assert.rejects(made.request({ ...CALL, signal: stop.signal }), (error) => error === reason)
  await assert.rejects(made.stream({ ...CALL, signal: stop.signal }, 1000), (error) => error === reason)
  assert.equal(server.asked.length, 1)
})

test('an answer that is too large is not read to its end', async () => {
  const closed = Promise.withResolvers<void>()
  server.reply = (response) => {
    response.on('close', closed.resolve)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('x'.repeat(2 * 1024 * 1024))
  }
  await assert.rejects(transport().request({ ...CALL, limit: 1024 * 1024 }), {
    code: 'Unavailable',
    reason: 'AnswerTooLarge',
    message: /larger than 1 MiB/,
  })
  await closed.promise
})

test('HTML, and JSON that is none, are no crash', async () => {
  const made = transport()
  server.reply = (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Log in')
  await assert.rejects(made.request(CALL), {
    code: 'Unavailable',
    reason: 'NotJson',
    message: /200 with text\/html/,
  })
  server.reply = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"half":')
  await assert.rejects(made.request(CALL), { code: 'Unavailable', reason: 'NotJson' })
  server.reply = (response) => response.writeHead(302, { location: '/login' }).end()
  await assert.rejects(made.request(CALL), { code: 'Unavailable', reason: 'NotJson', status: 302 })
  server.reply = (response) => response.socket?.end('SSH-2.0-OpenSSH\r\n')
  await assert.rejects(made.request(CALL), { code: 'Unavailable', reason: 'NoAnswer', status: 0 })
})

test('nobody there', async () => {
  const made = transport()
  await server.close()
  await assert.rejects(made.request(CALL), {
    name: 'ApiError',
    code: 'Unavailable',
    status: 0,
    message:
      /^GET X: no answer from http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\): check that the API server runs/,
  })
  server = await PlayedServer.start((response) => json(response, {}))
})

test('each call is noted with its outcome', async () => {
  const notes: RequestNote[] = []
  const made = transport({}, { onRequest: (note) => notes.push(note) })
  await made.request({ ...CALL, method: 'PATCH', body: { type: 'application/json', text: '{}' } })
  server.reply = (response) => json(response, refusal(429, 'TooManyRequests', ''), 429)
  await assert.rejects(made.request(CALL))
  await assert.rejects(made.stream(CALL, 1000))
  server.reply = (response) => response.socket?.destroy()
  await assert.rejects(made.request(CALL))
  assert.deepEqual(
    notes.map(({ method, code }) => `${method} ${code}`),
    ['PATCH 200', 'GET 429', 'GET 429', 'GET error'],
  )
  assert.ok(notes.every(({ seconds }) => seconds >= 0))
})

test('connections are used again, and no more of them are opened than that', async () => {
  const made = transport()
  for (let count = 0; count < 10; count++) await made.request(CALL)
  // A connection counts as free a moment after its answer is there, so the first call after another may open one more.
  assert.ok(new Set(server.asked.map((asked) => asked.port)).size <= 2)
  const held: ServerResponse[] = []
  server.reply = (response) => held.push(response)
  const calls = Array.from({ length: 40 }, () => made.request(CALL))
  while (held.length < 32) await turn()
  for (let count = 0; count < 100; count++) await turn()
  assert.equal(held.length, 32)
  server.reply = (response) => json(response, {})
  for (const response of held) json(response, {})
  await Promise.all(calls)
})
