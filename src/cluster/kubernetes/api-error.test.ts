import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answerError, networkError, statusError } from './api-error.ts'
import { refusal } from './server-fixture.ts'

const GET = { what: 'GET Secret ns/name' }

function json(document: unknown, status: number, headers: Record<string, string> = {}) {
  const body = Buffer.from(JSON.stringify(document))
  return { status, headers: { 'content-type': 'application/json', ...headers }, body }
}

function said(body: string, status: number, type = 'text/html', headers: Record<string, string> = {}) {
  return { status, headers: { 'content-type': type, ...headers }, body: Buffer.from(body) }
}

test('status and reason decide the code, never the text', () => {
  const table: [number, string, string][] = [
    [400, 'BadRequest', 'Invalid'],
    [401, 'Unauthorized', 'Forbidden'],
    [403, 'Forbidden', 'Forbidden'],
    [404, 'NotFound', 'NotFound'],
    [405, 'MethodNotAllowed', 'Invalid'],
    [408, 'Timeout', 'Unavailable'],
    [409, 'AlreadyExists', 'AlreadyExists'],
    [409, 'Conflict', 'Conflict'],
    [409, '', 'Conflict'],
    [410, 'Expired', 'Gone'],
    [410, 'Gone', 'Gone'],
    [413, 'RequestEntityTooLarge', 'Invalid'],
    [415, 'UnsupportedMediaType', 'Invalid'],
    [422, 'Invalid', 'Invalid'],
    [429, 'TooManyRequests', 'Unavailable'],
    [500, 'InternalError', 'Unavailable'],
    [500, 'Expired', 'Gone'],
    [503, 'ServiceUnavailable', 'Unavailable'],
    [504, 'Timeout', 'Unavailable'],
  ]
  for (const [status, reason, code] of table) {
    const error = answerError(GET, json(refusal(status, reason, 'not found: already exists, gone'), status))
    assert.deepEqual([error.code, error.status, error.reason], [code, status, reason], `${status} ${reason}`)
    assert.equal(error.name, 'ApiError')
    assert.ok(error.message.startsWith('GET Secret ns/name: '), error.message)
  }
})

test('what the server says is passed on, cleaned of line ends and control characters', () => {
  const error = answerError(GET, json(refusal(404, 'NotFound', 'secrets "name"\n\x1b[31m not found'), 404))
  assert.equal(error.message, 'GET Secret ns/name: secrets "name" [31m not found')
  const long = answerError(GET, json(refusal(422, 'Invalid', 'x'.repeat(100_000)), 422))
  assert.ok(long.message.length < 1100)
})

test('a namespace that is being deleted is told from a missing permission by its cause', () => {
  const details = {
    causes: [{ reason: 'NamespaceTerminating', message: 'gone soon', field: 'metadata.namespace' }],
  }
  const error = answerError(GET, json(refusal(403, 'Forbidden', 'forbidden', details), 403))
  assert.equal(error.code, 'Terminating')
  assert.deepEqual(error.causes, details.causes)
})

test('how long to wait: the header first, then the details, never more than ten minutes', () => {
  const details = { retryAfterSeconds: 7 }
  const waits = [
    answerError(GET, json(refusal(429, 'TooManyRequests', '', details), 429, { 'retry-after': '3' })),
    answerError(GET, json(refusal(429, 'TooManyRequests', '', details), 429)),
    answerError(GET, json(refusal(429, 'TooManyRequests', ''), 429)),
    answerError(GET, json(refusal(429, 'TooManyRequests', '', { retryAfterSeconds: -1 }), 429)),
    answerError(GET, said('Too many requests', 429, 'text/plain', { 'retry-after': '1' })),
    answerError(GET, said('', 503, 'text/plain', { 'retry-after': '99999999' })),
    answerError(GET, said('', 503, 'text/plain', { 'retry-after': 'tomorrow' })),
  ].map((error) => error.retryAfter)
  assert.deepEqual(waits, [3000, 7000, undefined, undefined, 1000, 600_000, undefined])
})

test('what no API server says is named with status, type and begin, and is never "not found" for an object', () => {
  const html = answerError(GET, said(`<html>\n<b>Sign in</b>${'x'.repeat(500)}`, 404))
  assert.equal(html.code, 'Unavailable')
  assert.equal(html.reason, 'NotJson')
  assert.equal(html.status, 404)
  assert.match(
    html.message,
    /^GET Secret ns\/name: the server answered 404 with text\/html, not as .*: '<html> <b>Sign in/,
  )
  assert.ok(html.message.length < 400)
  for (const odd of [
    json({ error: 'rate limited' }, 403),
    json([1, 2], 500),
    said('{"kind":"Status"', 404, 'application/json'),
    { status: 302, headers: {}, body: Buffer.alloc(0) },
    said('\xff\xfe\0', 200, 'application/octet-stream'),
  ]) {
    const error = answerError(GET, odd)
    assert.deepEqual([error.code, error.reason, error.status], ['Unavailable', 'NotJson', odd.status])
  }
})

test('a kind that is not served is "not found" only for a call on all of its objects', () => {
  const answer = said('404 page not found\n', 404, 'text/plain; charset=utf-8')
  const one = answerError(GET, answer)
  const all = answerError({ what: 'LIST OnionService', collection: true }, answer)
  assert.deepEqual([one.code, all.code], ['Unavailable', 'NotFound'])
  assert.match(all.message, /CustomResourceDefinitions/)
})

test('a refused Secret is described by its fields, not by the text, which may quote it', () => {
  const details = {
    causes: [{ reason: 'FieldValueInvalid', message: 'Invalid value: "hunter2"', field: 'data[a]' }],
  }
  const answer = json(refusal(422, 'Invalid', 'data[a]: Invalid value: "hunter2"', details), 422)
  const error = answerError({ what: 'APPLY Secret ns/name', secret: true }, answer)
  assert.equal(error.message, 'APPLY Secret ns/name: Invalid (422); data[a]: FieldValueInvalid')
  assert.ok(!JSON.stringify(error.causes).includes('hunter2'))
  assert.match(answerError({ what: 'APPLY X ns/name' }, answer).message, /hunter2/)
})

test('an ERROR event carries its own code', () => {
  const gone = statusError(
    { what: 'WATCH Secret' },
    refusal(410, 'Expired', 'too old resource version: 1 (5)'),
  )
  assert.deepEqual([gone.code, gone.status, gone.reason], ['Gone', 410, 'Expired'])
  const odd = statusError({ what: 'WATCH Secret' }, {})
  assert.deepEqual([odd.code, odd.status], ['Unavailable', 0])
})

test('no answer: what to check depends on whether the server was not reached or not trusted', () => {
  const refused = Object.assign(new Error('x'), { code: 'ECONNREFUSED' })
  const untrusted = Object.assign(new Error('x'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  assert.match(
    networkError(GET, 'https://h:1', 'config', refused).message,
    /no answer from https:\/\/h:1 \(ECONNREFUSED\).*runs/,
  )
  assert.match(
    networkError(GET, 'https://h:1', 'config', untrusted).message,
    /config expects: check certificate-authority/,
  )
})
