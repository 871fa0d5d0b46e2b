import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { BUNDLES, type Bundle, makeBundle } from '../scripts/build/bundles.ts'
import { packageFaults } from '../scripts/build/packages.ts'
import { version } from '../src/cli/version.ts'

/** What runs in the images: one file a program. */

const folder = mkdtempSync(join(tmpdir(), 'bundles-'))
const bundles: Record<string, Bundle> = {}

before(async () => {
  for (const spec of BUNDLES) bundles[spec.name] = await makeBundle(spec, folder, version())
})
after(() => rmSync(folder, { recursive: true, force: true }))

/** Exit code and output, with nothing of this repository around. */
async function run(bundle: string, ...args: string[]): Promise<{ code: number; output: string }> {
  const options = { cwd: folder, env: { PATH: process.env.PATH } }
  return promisify(execFile)(process.execPath, [join(folder, `${bundle}.mjs`), ...args], options).then(
    ({ stdout }) => ({ code: 0, output: stdout }),
    ({ code, stdout, stderr }) => ({ code, output: `${stdout}${stderr}` }),
  )
}

test('the bundles hold the packages that were committed to, within their budgets', () => {
  assert.deepEqual(packageFaults(bundles), [], "'npm run build -- --packages' commits to what is meant")
  for (const { name, budget } of BUNDLES) {
    const { bytes } = bundles[name]!
    assert.ok(bytes > 10_000 && bytes <= budget, `${name}: ${bytes} bytes of ${budget}`)
  }
})

test("the agent's bundle knows no Kubernetes", () => {
  const { packages, sources } = bundles['tor-agent']!
  assert.ok(sources.includes('src/tor/agent/agent.ts'), sources.join(' '))
  const foreign = sources.filter(
    (path) => !/^src\/(core|agent|relay|tor)\//.test(path) || /\/(operator|api)\//.test(path),
  )
  assert.deepEqual(foreign, [])
  for (const name of ['zod', 'undici', 'yaml', 'commander', 'prom-client']) {
    assert.ok(!packages.includes(name), name)
  }
})

test("the operator's bundle asks an API server, and understands what it says", async () => {
  const asked = new Set<string>()
  const server = createServer((request, response) => {
    asked.add(`${request.method} ${request.url?.split('?')[0]}`)
    const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Forbidden', code: 403 }
    const text = JSON.stringify({ ...status, message: 'the door is closed' })
    response.writeHead(403, { 'content-type': 'application/json' }).end(text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const named = (name: string, of: string, what: object): object[] => [{ name, [of]: what }]
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: named('test', 'context', { cluster: 'test', user: 'test' }),
    clusters: named('test', 'cluster', { server: `http://127.0.0.1:${port}` }),
    users: named('test', 'user', {}),
  }
  const file = join(folder, 'kubeconfig')
  writeFileSync(file, JSON.stringify(kubeconfig))
  const off = ['--metrics-address', 'off', '--health-address', 'off', '--no-leader-elect']
  const args = ['operator', '--tor-image', 'postern-tor:1', '--kubeconfig', file, ...off]
  const operator = spawn(process.execPath, [join(folder, 'postern.mjs'), ...args], { cwd: folder })
  try {
    let log = ''
    await new Promise<void>((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`it understood no answer; saw ${log}`)), 60_000)
      operator.stderr.on('data', (text) => {
        log += String(text)
        if (!log.includes('the door is closed')) return
        clearTimeout(late)
        resolve()
      })
      operator.on('exit', (code) => reject(new Error(`it ended with ${code}; saw ${log}`)))
    })
    const all = [...asked].join('\n')
    assert.match(all, /^GET \/apis\/tor\.fr0st\.dev\/v1alpha1\/onionservices$/m)
  } finally {
    operator.kill('SIGKILL')
    server.closeAllConnections()
    server.close()
  }
})

test('a bundle runs alone, and knows its version', async () => {
  assert.deepEqual(await run('postern', '--version'), { code: 0, output: `${version()}\n` })
  const help = await run('postern', 'operator', '--help')
  assert.equal(help.code, 0, help.output)
  assert.match(help.output, /--tor-image/)
  const wrong = await run('postern', 'operator')
  assert.equal(wrong.code, 2, wrong.output)
  assert.match(wrong.output, /POSTERN_TOR_IMAGE/)
  const agent = await run('tor-agent')
  assert.equal(agent.code, 2, agent.output)
  assert.match(agent.output, /usage: tor-agent/)
})
