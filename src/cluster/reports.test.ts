import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { PosternError } from '../core/errors.ts'
import { type ReportSource, Reports } from './reports.ts'

const folder = mkdtempSync(join(tmpdir(), 'reports-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function identity(name: string): { key: string; cert: string } {
  const [key, cert] = [join(folder, `${name}.pem`), join(folder, `${name}.crt`)]
  const args = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=agent'
  execFileSync('openssl', [...args.split(' '), '-keyout', key, '-out', cert], { stdio: 'ignore' })
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
}

const own = identity('own')
const other = identity('other')
const TOKEN = 'a-token-of-an-agent'

interface Seen {
  method: string | undefined
  path: string | undefined
  authorization: string | undefined
}

/** An agent that answers as it is told. */
async function agent(
  answer: (response: ServerResponse, request: IncomingMessage) => void,
): Promise<{ source: ReportSource; seen: Seen[] } & Disposable> {
  const seen: Seen[] = []
  const server = createServer({ ...own, minVersion: 'TLSv1.3' }, (request, response) => {
    const { method, url, headers } = request
    seen.push({ method, path: url, authorization: headers.authorization })
    answer(response, request)
  })
  server.on('tlsClientError', () => {})
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    source: { host: '127.0.0.1', port, certificate: own.cert, token: TOKEN },
    seen,
    [Symbol.dispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

function reports(changed: (key: string) => void = () => {}): Reports<{ revision: number }> & Disposable {
  const made = new Reports((document) => document as { revision: number }, changed)
  return Object.assign(made, { [Symbol.dispose]: () => made.close() })
}

const failed = (says: RegExp) => (error: unknown) => {
  assert.ok(error instanceof PosternError)
  assert.equal(error.code, 'RetireFailed')
  assert.match(error.message, says)
  return true
}

test('an agent is retired by one request with its token', async () => {
  using there = await agent((response) => response.writeHead(202).end())
  using all = reports()
  await all.retire(there.source)
  assert.deepEqual(there.seen, [{ method: 'POST', path: '/retire', authorization: `Bearer ${TOKEN}` }])
})

test('it does not wait for a poll that the same agent holds', async () => {
  const polls: ServerResponse[] = []
  using there = await agent((response, { url }) => {
    if (url === '/report') response.end('{"revision":1}')
    else if (url === '/retire') response.writeHead(202).end()
    else polls.push(response)
  })
  const first = Promise.withResolvers<void>()
  using all = reports(() => {
    if (all.get('web')?.report !== undefined) first.resolve()
  })
  all.follow('web', there.source)
  await first.promise
  await all.retire(there.source)
  assert.equal(all.get('web')?.report?.revision, 1)
})

test('a refusal, an answer without end, and a peer that is gone are told with what follows', async () => {
  using all = reports()
  {
    using old = await agent((response) => response.writeHead(404).end())
    await assert.rejects(all.retire(old.source), failed(/answered 404.*ends by itself/))
  }
  {
    using endless = await agent((response) => {
      response.writeHead(202)
      // More than is read, and no end.
      response.write('x'.repeat(200_000))
    })
    await assert.rejects(all.retire(endless.source), failed(/too large/))
  }
  {
    const gone = await agent((response) => response.end())
    gone[Symbol.dispose]()
    await assert.rejects(all.retire(gone.source), failed(/ECONNREFUSED/))
  }
})

test('a peer with another certificate gets no token', async () => {
  using there = await agent((response) => response.writeHead(202).end())
  using all = reports()
  await assert.rejects(all.retire({ ...there.source, certificate: other.cert }), failed(/certificate/))
  assert.deepEqual(there.seen, [])
})

test('closing ends what is still asked', async () => {
  const asked = Promise.withResolvers<void>()
  using there = await agent(() => asked.resolve())
  using all = reports()
  const retiring = assert.rejects(all.retire(there.source), failed(/./))
  await asked.promise
  all.close()
  await retiring
})
