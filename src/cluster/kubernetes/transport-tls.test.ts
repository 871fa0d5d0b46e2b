import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { json, PlayedServer, refusal } from './server-fixture.ts'
import type { ConnectionSettings, Pem, User } from './settings.ts'
import { type Pair, TestAuthority } from './tls-fixture.ts'
import { type Call, Transport } from './transport.ts'

const CALL: Call = { what: 'GET X', method: 'GET', path: '/x' }

let folder: string
let authority: TestAuthority
let stranger: TestAuthority
let serverPair: Pair
let alice: Pair
let bob: Pair
let server: PlayedServer | undefined
const opened: Transport[] = []
let now = 0

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-tls-'))
  authority = new TestAuthority(folder, 'authority')
  stranger = new TestAuthority(folder, 'stranger')
  serverPair = authority.issue('server', 'IP:127.0.0.1,DNS:api.test')
  alice = authority.issue('alice')
  bob = authority.issue('bob')
})

after(() => rmSync(folder, { recursive: true }))

afterEach(async () => {
  await Promise.all(opened.splice(0).map((transport) => transport.close()))
  await server?.close()
  server = undefined
})

/** Answers with the name in the client's certificate. */
async function start(pair: Pair = serverPair): Promise<PlayedServer> {
  const { cert, key } = pair
  server = await PlayedServer.start((response) => json(response, { user: userOf(response) }), {
    cert,
    key,
    ca: authority.pair.cert,
    requestCert: true,
    rejectUnauthorized: false,
  })
  return server
}

function userOf(response: ServerResponse): string | undefined {
  const name = (response.socket as TLSSocket).getPeerCertificate().subject?.CN
  return Array.isArray(name) ? name[0] : name
}

function text(pair: Pair): Pem {
  return { where: 'test', text: pair.cert }
}

function transport(port: number, tls: Partial<ConnectionSettings['tls']>, user: User = {}): Transport {
  const made = new Transport(
    {
      source: 'a test',
      server: `https://127.0.0.1:${port}`,
      namespace: 'x',
      tls: { insecure: false, ...tls },
      user,
    },
    { component: 'test', version: '1', now: () => now },
  )
  opened.push(made)
  return made
}

async function whoAmI(made: Transport): Promise<unknown> {
  return ((await made.request(CALL)).document as { user?: string }).user
}

test('a server is believed by the given authority alone, under its address or the name that is set', async () => {
  const { port } = await start()
  assert.equal(await whoAmI(transport(port, { ca: text(authority.pair) })), undefined)
  assert.equal(await whoAmI(transport(port, { ca: text(authority.pair), serverName: 'api.test' })), undefined)
  assert.equal(await whoAmI(transport(port, { insecure: true })), undefined)
  const untrusted = {
    code: 'Unavailable',
    reason: 'NoAnswer',
    message: /a test expects: check certificate-authority/,
  }
  const count = server?.asked.length
  for (const tls of [
    {},
    { ca: text(stranger.pair) },
    { ca: text(authority.pair), serverName: 'other.test' },
  ]) {
    await assert.rejects(transport(port, tls, { token: 'hunter2' }).request(CALL), untrusted)
  }
  assert.equal(server?.asked.length, count)
})

test('a client certificate is taken anew from its files, and what is under way goes on', async () => {
  const played = await start()
  const certificate = { where: 'test', file: join(folder, 'client.crt') }
  const key = { where: 'test', file: join(folder, 'client.key') }
  const put = (pair: Pair): void => {
    copyFileSync(pair.certFile, certificate.file)
    copyFileSync(pair.keyFile, key.file)
  }
  put(alice)
  const made = transport(played.port, { ca: text(authority.pair) }, { certificate, key })
  assert.equal(await whoAmI(made), 'alice')

  const watching = Promise.withResolvers<ServerResponse>()
  played.reply = (response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write('1')
    watching.resolve(response)
  }
  const stream = await made.stream(CALL, 60_000)
  const response = await watching.promise
  played.reply = (other) => json(other, { user: userOf(other) })

  put(bob)
  now += 4_999
  assert.equal(await whoAmI(made), 'alice', 'the files are not looked at before their time')
  now += 1
  assert.equal(await whoAmI(made), 'bob')

  // Half of a rotation: the certificate is there, its key is not.
  copyFileSync(alice.certFile, certificate.file)
  now += 5_000
  assert.equal(await whoAmI(made), 'bob')
  rmSync(key.file)
  now += 5_000
  assert.equal(await whoAmI(made), 'bob')
  put(alice)
  now += 5_000
  assert.equal(await whoAmI(made), 'alice')

  response.end('2')
  let text_ = ''
  for await (const chunk of stream.chunks) text_ += chunk.toString()
  assert.equal(text_, '12')
})

test('a 401 looks at the files of the client certificate at once', async () => {
  const played = await start()
  const certificate = { where: 'test', file: join(folder, 'again.crt') }
  const key = { where: 'test', file: join(folder, 'again.key') }
  copyFileSync(alice.certFile, certificate.file)
  copyFileSync(alice.keyFile, key.file)
  const made = transport(played.port, { ca: text(authority.pair) }, { certificate, key })
  played.reply = (response) => {
    const user = userOf(response)
    if (user === 'bob') json(response, { user })
    else json(response, refusal(401, 'Unauthorized', ''), 401)
  }
  await assert.rejects(made.request(CALL), { status: 401 })
  copyFileSync(bob.certFile, certificate.file)
  copyFileSync(bob.keyFile, key.file)
  assert.equal(await whoAmI(made), 'bob')
  assert.equal(played.asked.length, 3)
})

test('a new certificate authority is taken from its file', async () => {
  const played = await start()
  const ca = { where: 'test', file: join(folder, 'ca.crt') }
  writeFileSync(ca.file, stranger.pair.cert)
  const made = transport(played.port, { ca })
  await assert.rejects(made.request(CALL), { reason: 'NoAnswer' })
  writeFileSync(ca.file, `${stranger.pair.cert}${authority.pair.cert}`)
  now += 5_000
  assert.equal(await whoAmI(made), undefined)
})

test('certificates that cannot be used are refused before anything is sent', async () => {
  const { port } = await start()
  const key = { where: 'test', text: bob.key }
  const broken = '-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----\n'
  for (const [tls, user] of [
    [{ ca: text(authority.pair) }, { certificate: text(alice), key }],
    [{ ca: { where: 'test', text: broken } }, {}],
  ] as const) {
    await assert.rejects(transport(port, tls, user).request(CALL), (error: Error & { code: string }) => {
      assert.equal(error.code, 'Unavailable')
      assert.match(
        error.message,
        /GET X: a test: the certificate authority, client certificate or client key cannot be used/,
      )
      assert.ok(!error.message.includes('hunter2'))
      return true
    })
  }
})

test('HTTP/1.1 is spoken with a server that would rather speak HTTP/2', async () => {
  const { cert, key } = serverPair
  const versions: string[] = []
  const both = createSecureServer({ cert, key, allowHTTP1: true }, (request, response) => {
    versions.push(request.httpVersion)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end('{}')
  })
  await new Promise<void>((resolve) => both.listen(0, '127.0.0.1', resolve))
  try {
    const made = transport((both.address() as AddressInfo).port, { ca: text(authority.pair) })
    await made.request(CALL)
    ;(await made.stream(CALL, 60_000)).close()
    assert.deepEqual(versions, ['1.1', '1.1'])
    await made.close()
  } finally {
    await new Promise((resolve) => both.close(resolve))
  }
})
