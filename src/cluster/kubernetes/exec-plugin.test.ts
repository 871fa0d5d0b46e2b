import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Credentials, credentialsOf } from './credentials.ts'
import { runExecPlugin } from './exec-plugin.ts'
import { json, PlayedServer, refusal } from './server-fixture.ts'
import type { ExecPlugin } from './settings.ts'
import { Transport } from './transport.ts'

const VERSION = 'client.authentication.k8s.io/v1'
let folder: string

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-exec-'))
})

after(() => rmSync(folder, { recursive: true }))

let count = 0

/** A plug-in that is this script of a shell. */
function plugin(script: string, more: Partial<ExecPlugin> = {}): ExecPlugin {
  const command = join(folder, `plugin-${count++}`)
  writeFileSync(command, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  const base = { where: 'config: users[me].user.exec', apiVersion: VERSION, args: [], env: [] }
  return { ...base, command, interactiveMode: 'Never', ...more }
}

function prints(status: object, more: object = {}): string {
  return `echo '${JSON.stringify({ apiVersion: VERSION, kind: 'ExecCredential', status, ...more })}'`
}

test('a plug-in gets its arguments unchanged, its environment and KUBERNETES_EXEC_INFO, and no input', async () => {
  const seen = join(folder, 'seen')
  const script = `
    { printf '%s|' "$@"; echo; echo "$COLOUR"; echo "$KUBERNETES_EXEC_INFO"; cat; } > "${seen}"
    ${prints({ token: 'abc', expirationTimestamp: '2030-01-01T00:00:00Z' })}`
  const made = plugin(script, {
    args: ['a b', '$(touch x)', '*'],
    env: [{ name: 'COLOUR', value: 'red; blue' }],
    cluster: { server: 'https://x', config: { audience: 'y' } },
  })
  assert.deepEqual(await runExecPlugin(made), { token: 'abc', expires: Date.UTC(2030, 0, 1) })
  const [args, colour, info, ...rest] = readFileSync(seen, 'utf8').split('\n')
  assert.equal(args, 'a b|$(touch x)|*|')
  assert.equal(colour, 'red; blue')
  assert.deepEqual(JSON.parse(info ?? ''), {
    apiVersion: VERSION,
    kind: 'ExecCredential',
    spec: { interactive: false, cluster: { server: 'https://x', config: { audience: 'y' } } },
  })
  assert.deepEqual(rest, [''])
})

test('certificates, and a token beside them', async () => {
  const status = { clientCertificateData: 'CERT', clientKeyData: 'KEY', token: 'abc' }
  assert.deepEqual(await runExecPlugin(plugin(prints(status))), {
    token: 'abc',
    certificate: { cert: 'CERT', key: 'KEY' },
  })
})

test('whatever a plug-in does wrong is an error that says so, without what it printed', async () => {
  const table: [string, RegExp][] = [
    ['echo hunter2', /printed no JSON/],
    ['exit 0', /printed no JSON/],
    ['echo hunter2; exit 3', /ended with status 3/],
    ['kill -9 $$', /ended with SIGKILL/],
    ['echo "[]"', /printed no ExecCredential of client\.authentication\.k8s\.io\/v1/],
    [
      prints({ token: 'hunter2' }, { apiVersion: 'client.authentication.k8s.io/v1beta1' }),
      /set the apiVersion/,
    ],
    [prints({}), /neither a token nor a client certificate/],
    [prints({ token: 'hunter2 x' }), /a token with spaces/],
    [prints({ clientKeyData: 'hunter2' }), /a key without its certificate/],
    [prints({ token: 'hunter2', expirationTimestamp: 'soon' }), /an expirationTimestamp that is no time/],
    ['head -c 2000000 /dev/zero 2>/dev/null', /more than 1 MiB/],
  ]
  for (const [script, message] of table) {
    await assert.rejects(runExecPlugin(plugin(script)), (error: Error & { code: string }) => {
      assert.equal(error.code, 'ExecPluginFailed')
      assert.match(error.message, message)
      assert.match(error.message, /^config: users\[me\]\.user\.exec\.command: \//)
      assert.ok(!`${error.stack}${error.cause}`.includes('hunter2'), `${error.stack}`)
      return true
    })
  }
})

test('a plug-in that does not end is ended, though what it started holds its output', async () => {
  const limits = { timeout: 2_000, interactiveTimeout: 2_000 }
  const holder = join(folder, 'holder')
  const made = plugin(`sleep 60 & echo $! > "${holder}"; wait`)
  await assert.rejects(runExecPlugin(made, limits), {
    code: 'ExecPluginFailed',
    message: /no credentials within 2 s/,
  })
  process.kill(Number(readFileSync(holder, 'utf8')), 'SIGKILL')
})

test('a plug-in that is not there: how to install it', async () => {
  const made = plugin('', { command: 'postern-no-such-plugin', installHint: 'Get it from example.test' })
  await assert.rejects(runExecPlugin(made), {
    code: 'ExecPluginMissing',
    message:
      /postern-no-such-plugin is not installed: install it, or use another context\nGet it from example\.test$/,
  })
  writeFileSync(join(folder, 'plain'), '')
  await assert.rejects(runExecPlugin(plugin('', { command: join(folder, 'plain') })), {
    code: 'ExecPluginFailed',
    message: /cannot be started \(EACCES\)/,
  })
})

test('a plug-in that needs a terminal is not run without one', {
  skip: process.stdin.isTTY && 'there is one',
}, async () => {
  await assert.rejects(runExecPlugin(plugin(prints({ token: 'x' }), { interactiveMode: 'Always' })), {
    code: 'ExecPluginFailed',
    message: /needs a terminal/,
  })
})

/** Credentials of a plug-in that numbers its tokens. */
function numbered(expires?: string): Credentials {
  const file = join(folder, `count-${count}`)
  const expiry = expires === undefined ? '' : `,"expirationTimestamp":"${expires}"`
  return credentialsOf(
    {
      exec: plugin(`echo x >> "${file}"
        n=$(wc -l < "${file}")
        echo '{"apiVersion":"${VERSION}","kind":"ExecCredential","status":{"token":"t'$n'"${expiry}}}'`),
    },
    () => performance.now(),
  )
}

test('a plug-in is run once for all who wait, and again when its credential has expired or was refused', async () => {
  const lasting = numbered()
  const [first, same] = await Promise.all([lasting.current(), lasting.current()])
  assert.equal(first.token, 't1')
  assert.equal(same, first)
  const [second, third] = await Promise.all([lasting.renew(first), lasting.renew(first)])
  assert.equal(second.token, 't2')
  assert.equal(third, second)
  // It was refused to somebody else, and has been renewed since.
  assert.equal(await lasting.renew(first), second)
  assert.equal(await lasting.current(), second)
  const expired = numbered('2020-01-01T00:00:00Z')
  assert.equal((await expired.current()).token, 't1')
  assert.equal((await expired.current()).token, 't2')
})

test('a refused credential is asked for anew, and the call retried', async () => {
  const server = await PlayedServer.start((response, { headers }) =>
    headers.authorization === 'Bearer new'
      ? json(response, {})
      : json(response, refusal(401, 'Unauthorized', ''), 401),
  )
  const marker = join(folder, 'marker')
  const exec = plugin(
    `if [ -e "${marker}" ]; then ${prints({ token: 'new' })}; else touch "${marker}"; ${prints({ token: 'old' })}; fi`,
  )
  const transport = new Transport(server.settings({ exec }), { component: 'test', version: '1' })
  const call = { what: 'GET X', method: 'GET', path: '/x' } as const
  assert.equal((await transport.request(call)).status, 200)
  assert.deepEqual(
    server.asked.map((asked) => asked.headers.authorization),
    ['Bearer old', 'Bearer new'],
  )
  await transport.close()
  const broken = new Transport(server.settings({ exec: plugin('exit 1') }), {
    component: 'test',
    version: '1',
  })
  await assert.rejects(broken.request(call), {
    name: 'ApiError',
    reason: 'CredentialsUnavailable',
    message: /^GET X: config: users\[me\]\.user\.exec\.command: .* ended with status 1/,
  })
  await broken.close()
  await server.close()
})
