import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, test } from 'node:test'
import { SILENT } from '../core/logger.ts'
import { type ReportCredentials, ReportServer } from './report-server.ts'
import { Revisions } from './revisions.ts'

const folder = mkdtempSync(join(tmpdir(), 'report-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function credentials(name: string, token: string): ReportCredentials {
  const [key, certificate] = [join(folder, `${name}.pem`), join(folder, `${name}.crt`)]
  const args = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=${name}`
  execFileSync('openssl', [...args.split(' '), '-keyout', key, '-out', certificate], { stdio: 'ignore' })
  return { certificate: readFileSync(certificate), key: readFileSync(key), token: Buffer.from(`${token}\n`) }
}

const TOKEN = 'a-token-of-more-than-16-characters'
const first = credentials('first', TOKEN)
const second = credentials('second', `${TOKEN}-2`)

interface Answer {
  status: number
  body: { revision?: number; value?: number; error?: string }
}

function get(
  server: ReportServer,
  path: string,
  options: { token?: string; ca?: Buffer; method?: string; servername?: string; body?: string } = {},
): Promise<Answer> {
  const { token = TOKEN, ca = first.certificate, method = 'GET', servername = 'first' } = options
  return new Promise((resolve, reject) => {
    const ask = request(
      {
        host: '127.0.0.1',
        port: server.port,
        path,
        method,
        ca,
        servername,
        agent: false,
        headers: { authorization: `Bearer ${token}` },
      },
      (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          text += chunk
        })
        response.on('end', () =>
          resolve({ status: response.statusCode!, body: text === '' ? {} : JSON.parse(text) }),
        )
      },
    )
    ask.on('error', reject)
    ask.end(options.body)
  })
}

let state = 1
let server: ReportServer
let report: Revisions<{ value: number }>

let retired: number

async function serve(pollMs?: number): Promise<void> {
  retired = 0
  state = 1
  report = new Revisions(() => ({ value: state }), 100, 1)
  const onRetire = (): void => {
    retired += 1
  }
  const options = { host: '127.0.0.1', port: 0, report, log: SILENT, onRetire }
  server = new ReportServer(pollMs === undefined ? options : { ...options, pollMs })
  await server.use(first)
}

afterEach(() => server.close())

test('gives the report over TLS to who has the token, and to nobody else', async () => {
  await serve()
  assert.deepEqual(await get(server, '/report'), { status: 200, body: { value: 1, revision: 100 } })
  assert.equal((await get(server, '/report', { token: 'wrong' })).status, 401)
  assert.equal((await get(server, '/other', { token: 'wrong' })).status, 401)
  assert.equal((await get(server, '/other')).status, 404)
  assert.equal((await get(server, '/report', { method: 'POST' })).status, 405)
  assert.equal((await get(server, '/report?after=x')).status, 400)
  await assert.rejects(get(server, '/report', { ca: second.certificate }))
})

test('a retirement is passed on: by POST, with the token, without a body', async () => {
  await serve()
  assert.equal((await get(server, '/retire', { method: 'POST', token: 'wrong' })).status, 401)
  assert.equal((await get(server, '/retire')).status, 405)
  assert.equal((await get(server, '/retire', { method: 'POST', body: 'now' })).status, 413)
  assert.equal(retired, 0)
  assert.deepEqual(await get(server, '/retire', { method: 'POST' }), { status: 202, body: {} })
  assert.equal(retired, 1)
  assert.equal((await get(server, '/report')).body.revision, 100)
})

test('where nobody can be retired there is no such path', async () => {
  await serve()
  await server.close()
  server = new ReportServer({ host: '127.0.0.1', port: 0, report, log: SILENT })
  await server.use(first)
  assert.equal((await get(server, '/retire', { method: 'POST' })).status, 405)
  assert.equal((await get(server, '/retire')).status, 404)
})

test('a long poll is answered by the change, and not before', async () => {
  await serve()
  let answered = false
  const poll = get(server, '/report?after=100').then((answer) => {
    answered = true
    return answer
  })
  report.touch()
  assert.equal((await get(server, '/report')).body.revision, 100, 'an equal state is no change')
  assert.equal(answered, false)
  state = 2
  report.touch()
  assert.deepEqual((await poll).body, { value: 2, revision: 101 })
})

test('a poll for what is known already, or for what no agent gave out, is answered at once', async () => {
  await serve()
  assert.equal((await get(server, '/report?after=99')).body.revision, 100)
  assert.equal((await get(server, '/report?after=5000')).body.revision, 100)
})

test('a poll without news ends with the same report', async () => {
  await serve(30)
  assert.deepEqual((await get(server, '/report?after=100')).body, { value: 1, revision: 100 })
})

test('takes new credentials while it runs, and keeps the old ones when new ones are unusable', async () => {
  await serve()
  await server.use(second)
  assert.equal((await get(server, '/report', { ca: second.certificate, servername: 'second' })).status, 401)
  const fresh = { ca: second.certificate, servername: 'second', token: `${TOKEN}-2` }
  assert.equal((await get(server, '/report', fresh)).status, 200)
  const code = { code: 'ReportCredentialsInvalid' }
  await assert.rejects(server.use({ ...second, certificate: Buffer.from('nonsense') }), code)
  await assert.rejects(server.use({ ...second, key: first.key }), code)
  await assert.rejects(server.use({ ...second, token: Buffer.from('short') }), code)
  assert.equal((await get(server, '/report', fresh)).status, 200)
})

test('closing ends the polls', async () => {
  await serve()
  const poll = get(server, '/report?after=100')
  await get(server, '/report')
  await server.close()
  await poll.catch(() => {})
})
