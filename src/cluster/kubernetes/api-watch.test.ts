import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { Resource } from '../../core/resource.ts'
import { CONFIG_MAP } from '../kinds.ts'
import type { WatchEvent } from './api.ts'
import type { ApiClient } from './api-client.ts'
import { connect } from './connect.ts'
import { json, PlayedServer, refusal } from './server-fixture.ts'

let server: PlayedServer
let client: ApiClient

beforeEach(async () => {
  server = await PlayedServer.start(() => assert.fail('not asked for'))
  client = connect(server.settings(), { component: 'test', version: '1.2.3' })
})

afterEach(async () => {
  await client.close()
  await server.close()
})

function event(type: string, name: string, more: object = {}): string {
  return `${JSON.stringify({ type, object: { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name }, ...more } })}\n`
}

function begin(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'content-type': 'application/json' })
}

/** The events until the watch ends, and what it ended with. */
async function follow(): Promise<{ events: WatchEvent<Resource>[]; error?: unknown }> {
  const events: WatchEvent<Resource>[] = []
  try {
    for await (const one of client.watch(CONFIG_MAP, { resourceVersion: '5', timeoutSeconds: 60 }))
      events.push(one)
  } catch (error) {
    return { events, error }
  }
  return { events }
}

async function fails(expected: object, count = 0): Promise<void> {
  const { events, error } = await follow()
  assert.ok(error instanceof Error, `it ended without an error after ${events.length} events`)
  for (const [key, value] of Object.entries(expected)) {
    const found: unknown = (error as unknown as Record<string, unknown>)[key]
    if (value instanceof RegExp) assert.match(String(found), value)
    else assert.equal(found, value, error.message)
  }
  assert.equal(events.length, count)
}

test('events arrive whole, however the bytes are cut; bookmarks carry a version; the end is no error', async () => {
  const bookmark = { type: 'BOOKMARK', object: { kind: 'ConfigMap', metadata: { resourceVersion: '9' } } }
  const bytes = Buffer.from(
    `${event('ADDED', 'a', { data: { x: 'Zwiebel 🧅 ü' } })}\n${event('DELETED', 'b')}${JSON.stringify(bookmark)}\n`,
  )
  server.reply = async (response) => {
    begin(response)
    for (const byte of bytes) {
      response.write(Buffer.from([byte]))
      await turn()
    }
    response.end()
  }
  const { events, error } = await follow()
  assert.equal(error, undefined)
  assert.deepEqual(events, [
    {
      type: 'ADDED',
      object: { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a' }, data: { x: 'Zwiebel 🧅 ü' } },
    },
    { type: 'DELETED', object: { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'b' } } },
    { type: 'BOOKMARK', resourceVersion: '9' },
  ])
  const url = new URL(server.asked[0]!.path, 'http://x')
  assert.equal(url.pathname, '/api/v1/configmaps')
  assert.deepEqual(Object.fromEntries(url.searchParams), {
    watch: 'true',
    allowWatchBookmarks: 'true',
    resourceVersion: '5',
    timeoutSeconds: '60',
  })
})

test('only metadata, of one namespace', async () => {
  server.reply = (response) =>
    begin(response).end(event('ADDED', 'a', { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1' }))
  const options = {
    resourceVersion: '5',
    timeoutSeconds: 60,
    metadataOnly: true,
    namespace: 'ns',
    fieldSelector: 'metadata.name=a',
  }
  for await (const one of client.watch(CONFIG_MAP, options)) {
    assert.equal(one.type === 'ADDED' && one.object.kind, 'ConfigMap')
  }
  assert.match(
    server.asked[0]!.path,
    /^\/api\/v1\/namespaces\/ns\/configmaps\?.*fieldSelector=metadata\.name%3Da/,
  )
  assert.equal(
    server.asked[0]!.headers.accept,
    'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
  )
})

test('a watch that says nothing is known to be open', async () => {
  server.reply = (response) => begin(response).flushHeaders()
  const stop = new AbortController()
  const opened = Promise.withResolvers<void>()
  const options = { resourceVersion: '5', timeoutSeconds: 60, opened: opened.resolve, signal: stop.signal }
  const next = client.watch(CONFIG_MAP, options).next()
  await opened.promise
  const reason = new Error('enough')
  stop.abort(reason)
  await assert.rejects(next, (error) => error === reason)
})

test('whoever stops listening closes the connection', async () => {
  const closed = Promise.withResolvers<void>()
  server.reply = (response) => {
    begin(response).write(event('ADDED', 'a'))
    response.on('close', closed.resolve)
  }
  for await (const one of client.watch(CONFIG_MAP, { resourceVersion: '5', timeoutSeconds: 60 })) {
    assert.equal(one.type, 'ADDED')
    break
  }
  await closed.promise
})

test('no watch waits for another, nor a request for a watch', async () => {
  const watching: ServerResponse[] = []
  server.reply = (response, { path }) => {
    if (!path.includes('watch=true')) return json(response, { gitVersion: 'v1.37.2' })
    begin(response).flushHeaders()
    watching.push(response)
  }
  const running = Array.from({ length: 50 }, () => {
    const opened = Promise.withResolvers<void>()
    const options = { resourceVersion: '5', timeoutSeconds: 60, opened: opened.resolve }
    return { opened: opened.promise, ended: client.watch(CONFIG_MAP, options).next() }
  })
  await Promise.all(running.map((one) => one.opened))
  assert.equal(await client.version(), 'v1.37.2')
  assert.equal(new Set(server.asked.map((one) => one.port)).size, 51)
  for (const response of watching) response.end()
  await Promise.all(running.map((one) => one.ended))
})

test('torn in the middle of an event: what was whole has arrived, and it is an error', async () => {
  server.reply = async (response) => {
    begin(response).write(`${event('ADDED', 'a')}${event('ADDED', 'b').slice(0, 20)}`)
    await turn()
    response.socket?.destroySoon()
  }
  await fails({ name: 'ApiError', code: 'Unavailable', status: 0 }, 1)
  server.reply = (response) =>
    begin(response).end(`${event('ADDED', 'a')}${event('ADDED', 'b').slice(0, 20)}`)
  await fails({ code: 'Unavailable', reason: 'WatchTorn' }, 1)
})

test('a version that is too old: as an answer, and as an event', async () => {
  const status = refusal(410, 'Expired', 'too old resource version: 5 (900)')
  server.reply = (response) => json(response, status, 410)
  await fails({ code: 'Gone', status: 410, reason: 'Expired', message: /^WATCH ConfigMap: too old/ })
  server.reply = (response) =>
    begin(response).end(`${event('ADDED', 'a')}${JSON.stringify({ type: 'ERROR', object: status })}\n`)
  await fails({ code: 'Gone', status: 410, reason: 'Expired', message: /^WATCH ConfigMap: too old/ }, 1)
})

test('an event of 5 MB is taken, a line beyond 8 MiB is not', async () => {
  const large = event('ADDED', 'a', { data: { x: 'ü'.repeat(2_500_000) } })
  server.reply = (response) => begin(response).end(large)
  const { events, error } = await follow()
  assert.equal(error, undefined)
  assert.equal(events[0]?.type === 'ADDED' && (events[0].object.data as { x: string }).x.length, 2_500_000)
  server.reply = (response) => begin(response).end(`${event('ADDED', 'a')}${'x'.repeat(8 * 1024 * 1024 + 1)}`)
  await fails({ code: 'Unavailable', reason: 'WatchLineTooLong', message: /8 MiB/ }, 1)
})

test('what is no event ends the watch with an error, and is not quoted', async () => {
  for (const line of [
    'hunter2',
    '7',
    'null',
    '[]',
    '{}',
    '{"type":"ADDED"}',
    '{"type":"NEW","object":{}}',
    '{"type":"BOOKMARK","object":{"metadata":{}}}',
  ]) {
    server.reply = (response) => begin(response).end(`${line}\n`)
    await fails({ code: 'Unavailable', reason: 'WatchLineInvalid', message: /^WATCH ConfigMap: [^2]*$/ })
  }
  server.reply = (response) => begin(response).end('{"type":"ADDED","object":{}}\n')
  await fails({ code: 'Unavailable', reason: 'AnswerInvalid' })
})

test('an answer in HTML is no watch', async () => {
  server.reply = (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Log in\n')
  await fails({ code: 'Unavailable', reason: 'NotJson', message: /200 with text\/html.*'<html>Log in'/ })
  server.reply = (response) =>
    response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found\n')
  await fails({ code: 'NotFound', status: 404 })
  server.reply = (response) =>
    json(response, refusal(429, 'TooManyRequests', 'slow down'), 429, { 'retry-after': '2' })
  await fails({ code: 'Unavailable', status: 429, retryAfter: 2000 })
})

test('a server that goes away before it answers', async () => {
  server.reply = (response) => response.socket?.destroy()
  await fails({ code: 'Unavailable', reason: 'NoAnswer', message: /^WATCH ConfigMap: no answer from http:/ })
})
