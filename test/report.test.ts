import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReportServer } from '../src/agent/report-server.ts'
import { Revisions } from '../src/agent/revisions.ts'
import { Reports } from '../src/cluster/reports.ts'
import { makeReportIdentity, type ReportIdentity } from '../src/controller/report-identity.ts'

/** Both ends of the way up: the agent's server and the operator's follower. */

interface Said {
  revision: number
  word: string
}

function server(identity: ReportIdentity, word: () => string, first: number) {
  const revisions = new Revisions<Said>(() => ({ revision: 0, word: word() }), first)
  const running = new ReportServer({
    host: '127.0.0.1',
    port: 0,
    report: revisions,
    log: { debug() {}, info() {}, warn() {}, error() {} },
  })
  running.use({
    certificate: Buffer.from(identity.certificate),
    key: Buffer.from(identity.privateKey),
    token: Buffer.from(identity.token),
  })
  return { running, revisions }
}

async function until(what: string, check: () => boolean, seen: () => unknown): Promise<void> {
  const end = Date.now() + 20_000
  while (!check()) {
    if (Date.now() > end) assert.fail(`waited for ${what}; saw ${JSON.stringify(seen())}`)
    await new Promise((done) => setTimeout(done, 10))
  }
}

test('a change is seen, a silent agent loses its report, a new one is believed again', async () => {
  const identity = makeReportIdentity('test')
  let word = 'first'
  const one = server(identity, () => word, 100)
  await until(
    'the server',
    () => one.running.port !== undefined,
    () => one.running.port,
  )
  const port = one.running.port!
  const reports = new Reports<Said>(
    (document) => document as Said,
    () => {},
  )
  try {
    const view = () => reports.get('a')
    reports.follow('a', { host: '127.0.0.1', port, ...identity })
    await until('the first report', () => view()?.report?.word === 'first', view)
    word = 'second'
    one.revisions.touch()
    await until('the change', () => view()?.report?.word === 'second', view)
    await one.running.close()
    await until('the silence', () => view()?.report === undefined && view()?.error !== undefined, view)
    reports.follow('a', undefined)
    assert.equal(view(), undefined)
  } finally {
    reports.close()
    await one.running.close()
  }
})

test('neither another certificate nor another token is believed', async () => {
  const identity = makeReportIdentity('test')
  const other = makeReportIdentity('test')
  const one = server(identity, () => 'secret', 1)
  await until(
    'the server',
    () => one.running.port !== undefined,
    () => one.running.port,
  )
  const port = one.running.port!
  const reports = new Reports<Said>(
    (document) => document as Said,
    () => {},
  )
  try {
    reports.follow('certificate', { host: '127.0.0.1', port, ...other, token: identity.token })
    reports.follow('token', { host: '127.0.0.1', port, ...identity, token: other.token })
    for (const key of ['certificate', 'token']) {
      await until(
        `${key} to be refused`,
        () => reports.get(key)?.error !== undefined,
        () => reports.get(key),
      )
      assert.equal(reports.get(key)?.report, undefined)
    }
    assert.match(reports.get('token')!.error!, /401|403/)
  } finally {
    reports.close()
    await one.running.close()
  }
})
