import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from 'node:net'
import { after, test } from 'node:test'
import { makeReportIdentity } from '../../controller/report-identity.ts'
import { type FetchOptions, type FetchOutcome, fetchBridges } from './distributor.ts'

/** Self-signed, and so its own authority. */
const identity = makeReportIdentity('localhost')
const CERT = `${'a+/9'.repeat(17)}Zz`
const LINES = [1, 2].map((n) => `obfs4 192.0.2.${n}:443 ${String(n).repeat(40)} cert=${CERT} iat-mode=0`)
const PAGE = `<html><div id="bridgelines">${LINES.map((line) => line.replaceAll('+', '&#43;')).join('<br/>\n')}</div>`
const SECRET = 'k3y-in-the-address'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

const servers: (Server | TcpServer)[] = []
const sockets = new Set<Socket>()
after(() => {
  for (const socket of sockets) socket.destroy()
  for (const server of servers) server.close()
})

async function listen(server: Server | TcpServer): Promise<number> {
  servers.push(server)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return (server.address() as AddressInfo).port
}

const distributor = (handler: Handler): Promise<number> =>
  listen(createServer({ cert: identity.certificate, key: identity.privateKey }, handler))

const fetch = (
  port: number,
  options: FetchOptions = {},
  path = `/bridges?transport=obfs4&key=${SECRET}`,
): Promise<FetchOutcome> =>
  fetchBridges(`https://localhost:${port}${path}`, ['obfs4'], { ca: identity.certificate, ...options })

/** The failure, after a look at what it tells. */
function failureOf(outcome: FetchOutcome): {
  reason: string
  message: string
  reached: boolean
  wait?: number
} {
  assert.ok('failure' in outcome, `no failure: ${JSON.stringify(outcome)}`)
  for (const secret of [SECRET, CERT, '192.0.2.', '1'.repeat(40)]) {
    assert.ok(!outcome.failure.message.includes(secret), outcome.failure.message)
  }
  assert.match(outcome.failure.message, /[:;] /, 'says what to do next')
  return outcome.failure
}

test('bridges of a page come as canonical lines; what is asked says nothing of who asks', async () => {
  let asked: IncomingMessage | undefined
  const port = await distributor((request, response) => {
    asked = request
    response.setHeader('content-type', 'text/html; charset=utf-8').end(PAGE)
  })
  const outcome = await fetch(port)
  assert.ok('bridges' in outcome, JSON.stringify(outcome))
  assert.deepEqual(
    outcome.bridges.map(({ line }) => line),
    LINES,
  )
  assert.equal(asked?.url, `/bridges?transport=obfs4&key=${SECRET}`)
  assert.deepEqual(Object.keys(asked?.headers ?? {}).sort(), [
    'accept',
    'accept-encoding',
    'connection',
    'host',
    'user-agent',
  ])
})

const page =
  (text: string, status = 200, headers: Record<string, string> = {}): Handler =>
  (_, response) => {
    response.writeHead(status, headers).end(text)
  }
const drip: Handler = (_, response) => {
  response.writeHead(200).write('<html>')
  const timer = setInterval(() => response.write('.'), 20)
  response.on('close', () => clearInterval(timer))
}

const answers: [name: string, handler: Handler, reason: string, message: RegExp, options?: FetchOptions][] = [
  ['a captcha', page('<form id="captchaSubmission"><img alt="captcha">'), 'CaptchaPage', /your seed/],
  ['an empty page', page(''), 'NoBridges', /an empty page/],
  [
    'HTML of something else',
    page('<html><h1>It works!</h1></html>'),
    'NoBridges',
    /without bridges of the transport obfs4/,
  ],
  [
    'only bridges that cannot be used',
    page(LINES[0]!.replace('192.0.2.1', 'example.org')),
    'NoBridges',
    /1 bridges that cannot be used.*names/,
  ],
  [
    'bridges of another transport',
    page(LINES[0]!.replace('obfs4', 'webtunnel')),
    'NoBridges',
    /of the transport obfs4/,
  ],
  ['an error page with bridges on it', page(PAGE, 500), 'HttpStatus', /status 500/],
  ['404', page('not here', 404), 'HttpStatus', /status 404: open the source/],
  ['204', page('', 204), 'HttpStatus', /status 204/],
  ['compressed bytes', page(PAGE, 200, { 'content-encoding': 'gzip' }), 'PageEncoded', /compresses/],
  [
    'a redirect to another host',
    page('', 302, { location: 'https://example.org/' }),
    'RedirectRefused',
    /another host/,
  ],
  [
    'a redirect to another port',
    page('', 302, { location: 'https://localhost:1/' }),
    'RedirectRefused',
    /another host/,
  ],
  [
    'a redirect without a scheme',
    page('', 302, { location: '//example.org/' }),
    'RedirectRefused',
    /another host/,
  ],
  [
    'a redirect to http',
    page('', 301, { location: 'http://localhost/' }),
    'RedirectRefused',
    /without https/,
  ],
  [
    'a redirect to a file',
    page('', 301, { location: 'file:///etc/passwd' }),
    'RedirectRefused',
    /without https/,
  ],
  [
    'a redirect with a name',
    page('', 302, { location: 'https://me@localhost/' }),
    'RedirectRefused',
    /user name/,
  ],
  ['a redirect to nowhere', page('', 307), 'RedirectRefused', /without saying which/],
  ['a redirect to itself', page('', 308, { location: '/' }), 'RedirectRefused', /more than 3 times/],
  ['a page without end', drip, 'FetchTimeout', /no whole answer within 0.3 s/, { timeout: 300 }],
  ['no answer', () => {}, 'FetchTimeout', /no whole answer/, { timeout: 300 }],
  [
    'half an answer',
    (_, response) => {
      response
        .writeHead(200, { 'content-length': '1000' })
        .write(PAGE.slice(0, 100), () => response.destroy())
    },
    'ConnectionLost',
    /before its answer was whole/,
  ],
  ['headers without end', page('', 200, { x: 'y'.repeat(100_000) }), 'AnswerMalformed', /as HTTP servers do/],
]
for (const [name, handler, reason, message, options] of answers) {
  test(`a distributor that gives ${name}: ${reason}`, async () => {
    const failure = failureOf(await fetch(await distributor(handler), options))
    assert.equal(failure.reason, reason, failure.message)
    assert.match(failure.message, message)
  })
}

test('a redirect to the same host is followed, to the page that it names', async () => {
  const paths: (string | undefined)[] = []
  const port = await distributor((request, response) => {
    paths.push(request.url)
    if (paths.length < 4) response.writeHead(302, { location: `../en/${paths.length}?x=1#y` }).end('moved')
    else response.end(PAGE)
  })
  const outcome = await fetch(port, {}, '/bridges/')
  assert.ok('bridges' in outcome, JSON.stringify(outcome))
  assert.deepEqual(paths, ['/bridges/', '/en/1?x=1', '/en/2?x=1', '/en/3?x=1'])
})

test('of a page of 10 MB no more is taken than is allowed', async () => {
  const piece = Buffer.alloc(64 * 1024, ' ')
  const { promise: taken, resolve: ended } = Promise.withResolvers<number>()
  const port = await distributor((_, response) => {
    let bytes = 0
    const more = (): void => {
      while (bytes < 10 * 1024 * 1024 && !response.destroyed) {
        bytes += piece.length
        if (!response.write(piece)) return
      }
      response.end()
    }
    response.on('drain', more).on('close', () => ended(bytes))
    response.write(PAGE)
    more()
  })
  assert.equal(failureOf(await fetch(port)).reason, 'PageTooLarge')
  // Buffers of both ends hold what is on its way already.
  assert.ok((await taken) < 9 * 1024 * 1024, `${await taken} bytes`)

  const small = await distributor(page(PAGE))
  assert.ok('bridges' in (await fetch(small, { limit: PAGE.length })))
  assert.equal(failureOf(await fetch(small, { limit: PAGE.length - 1 })).reason, 'PageTooLarge')
})

test('who asks for patience is understood', async () => {
  const waits = new Map<string, (wait: number | undefined) => boolean>([
    ['120', (wait) => wait === 120_000],
    [new Date(Date.now() + 3_600_000).toUTCString(), (wait) => wait! > 3_000_000 && wait! <= 3_600_000],
    ['999999999', (wait) => wait === 7 * 24 * 3_600_000],
    ['yesterday', (wait) => wait === undefined],
    ['-5', (wait) => wait === undefined],
  ])
  for (const [value, is] of waits) {
    const port = await distributor(page('', 429, { 'retry-after': value }))
    const failure = failureOf(await fetch(port))
    assert.match(failure.message, /status 429.*less often/)
    assert.ok(is(failure.wait), `${value}: ${failure.wait}`)
    assert.equal(failure.reached, true)
  }
})

test('only https is fetched, without a name and a password, from an address that is one', async () => {
  let connections = 0
  const port = await listen(createTcpServer(() => connections++))
  const urls = new Map([
    [`http://localhost:${port}/`, 'NotHttps'],
    [`ftp://localhost:${port}/`, 'NotHttps'],
    ['file:///etc/passwd', 'NotHttps'],
    [`https://user:${SECRET}@localhost:${port}/`, 'CredentialsInUrl'],
    [`https://user@localhost:${port}/`, 'CredentialsInUrl'],
    ['https://', 'UrlInvalid'],
    ['bridges', 'UrlInvalid'],
    ['', 'UrlInvalid'],
  ])
  for (const [url, reason] of urls) {
    assert.equal(failureOf(await fetchBridges(url, ['obfs4'])).reason, reason, url)
  }
  assert.equal(connections, 0)
})

test('who is not the one of the address is not listened to', async () => {
  const port = await distributor(page(PAGE))
  const other = makeReportIdentity('localhost').certificate
  assert.equal(failureOf(await fetch(port, { ca: other })).reason, 'TlsFailed')
  const url = `https://127.0.0.1:${port}/`
  const wrongName = await fetchBridges(url, ['obfs4'], { ca: identity.certificate })
  assert.match(failureOf(wrongName).message, /prove who it is \(ERR_TLS_CERT_ALTNAME_INVALID\)/)

  const plain = await listen(
    createTcpServer((socket) => {
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')
    }),
  )
  assert.equal(failureOf(await fetch(plain)).reason, 'TlsFailed')
})

test('nobody there', async () => {
  const server = createTcpServer()
  const port = await listen(server)
  await new Promise<void>((done) => server.close(() => done()))
  assert.deepEqual(
    [failureOf(await fetch(port))].map(({ reason, reached }) => [reason, reached]),
    [['FetchRefused', false]],
  )
  // No name is so long, which is known without asking anybody.
  const nowhere = await fetchBridges(`https://${'a'.repeat(64)}.invalid/`, ['obfs4'])
  assert.equal(failureOf(nowhere).reason, 'NameNotResolved')
})

test('it stops when it is told to', async () => {
  const stop = new AbortController()
  const reason = new Error('the operator ends')
  const port = await distributor(() => stop.abort(reason))
  await assert.rejects(fetch(port, { signal: stop.signal }), reason)
  await assert.rejects(fetch(port, { signal: AbortSignal.abort(reason) }), reason)
})
