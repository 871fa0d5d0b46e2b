import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { SILENT } from '../../core/logger.ts'
import { TOPOLOGY_FILE, type TorTopology } from '../contract.ts'
import { ControlClient } from '../control/client.ts'
import { generateOnionKey } from '../onion/key.ts'
import { TorAgent, type TorAgentOptions } from './agent.ts'
import { readArguments } from './main.ts'

const TOR = '/usr/bin/tor'
const skip = existsSync(TOR) ? false : 'tor is not installed: apt-get install tor'
const LONG = 3_600_000

let base: string
let agent: TorAgent

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), 'tl-'))
  for (const folder of ['topology', 'keys']) await mkdir(join(base, folder))
})
afterEach(async () => {
  await agent.close()
  rmSync(base, { recursive: true, force: true })
})

async function until(what: string, look: () => unknown, limitMs = 30_000): Promise<void> {
  const end = performance.now() + limitMs
  while (!(await look())) {
    if (performance.now() > end) {
      assert.fail(`not within ${limitMs} ms: ${what}; report: ${JSON.stringify(agent.report, null, 1)}`)
    }
    await pause(20)
  }
}

async function declare(onions: string[], options: Record<string, string> = {}): Promise<void> {
  const topology: TorTopology = {
    version: 1,
    daemon: { name: 'tor', namespace: 'shop', logLevel: 'notice', options },
    onions: [],
    proxies: [],
  }
  for (const name of onions) {
    const { address, secret } = generateOnionKey()
    await writeFile(join(base, 'keys', `${name}.key`), secret)
    topology.onions.push({ name, address, since: 0, ports: [{ virtualPort: 80, endpoints: [] }] })
  }
  await writeFile(join(base, 'topology', '.new'), JSON.stringify(topology))
  await rename(join(base, 'topology', '.new'), join(base, 'topology', TOPOLOGY_FILE))
}

async function start(more: Partial<TorAgentOptions> = {}): Promise<void> {
  const folder = (name: string): string => join(base, name)
  agent = await TorAgent.start({
    topology: folder('topology'),
    keys: folder('keys'),
    data: folder('data'),
    run: folder('run'),
    address: '127.0.0.1',
    tor: TOR,
    log: SILENT,
    network: false,
    reportPort: 0,
    metricsPort: 0,
    lingerMs: LONG,
    ...more,
  })
}

async function probe(path: string): Promise<[number, string]> {
  const reply = await fetch(`http://127.0.0.1:${agent.ports.metrics}${path}`)
  return [reply.status, (await reply.text()).trim()]
}

/** Credentials of the report, and what retires an agent with them. */
async function credentials(): Promise<() => Promise<number | undefined>> {
  const [key, cert] = [join(base, 'keys', 'report.pem'), join(base, 'keys', 'report.crt')]
  const args = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=agent'
  execFileSync('openssl', [...args.split(' '), '-keyout', key, '-out', cert], { stdio: 'ignore' })
  await writeFile(join(base, 'keys', 'report.token'), 'a-token-of-the-agent')
  return () =>
    new Promise((resolve, reject) => {
      const call = request({
        host: '127.0.0.1',
        port: agent.ports.report,
        path: '/retire',
        method: 'POST',
        ca: readFileSync(cert),
        servername: 'agent',
        agent: false,
        headers: { authorization: 'Bearer a-token-of-the-agent' },
      })
      call.on('response', (response) => resolve(response.resume().statusCode))
      call.on('error', reject).end()
    })
}

const added = (): boolean => agent.report.onions[0]?.state === 'added'

test('serves on, publishes nothing and takes nothing more, until it is retired', { skip }, async () => {
  const retire = await credentials()
  await declare(['web'], { PublishHidServDescriptors: '1' })
  await start()
  await until('web is added', added)
  const { applied } = agent.report
  const control = await ControlClient.connect({ path: join(base, 'run', 'control') })
  await control.authenticate()
  assert.equal(agent.report.leaving, undefined)

  let over = false
  const left = agent.leave().then(() => {
    over = true
  })
  await until('it says so', () => agent.report.leaving)
  await until(
    'tor publishes nothing',
    async () => (await control.getConf('PublishHidServDescriptors')).PublishHidServDescriptors?.[0] === '0',
  )
  await declare([])
  assert.equal((await probe('/readyz'))[0], 200)
  assert.equal((await probe('/livez'))[0], 200)
  const web = agent.report.onions[0]?.address
  assert.equal((await control.getInfo('onions/detached'))['onions/detached'], web)
  assert.equal(agent.report.applied, applied)
  assert.equal(over, false)
  assert.equal(await retire(), 202)
  await left
  assert.ok((await control.closed) instanceof Error, 'its tor has ended')
})

test('retired before it is told to go: it stays, and does not linger later', { skip }, async () => {
  const retire = await credentials()
  await declare(['web'])
  await start()
  await until('web is added', added)
  assert.equal(await retire(), 202)
  assert.equal((await probe('/readyz'))[0], 200)
  assert.ok(agent.report.tor.running && !agent.report.leaving)
  await agent.leave()
})

test('with nothing in use, or told not to linger, it ends at once', { skip }, async () => {
  await declare([])
  await start()
  await until('tor runs', () => agent.report.tor.running)
  await agent.leave()
  assert.equal(agent.report.leaving, undefined)
  await declare(['web'])
  await start({ lingerMs: 0 })
  await until('web is added', added)
  await agent.leave()
  assert.equal(agent.report.leaving, undefined)
})

test('when its tor ends, it has nothing to stay for', { skip }, async () => {
  await declare(['web'])
  await start()
  await until('web is added', added)
  const left = agent.leave()
  await until('it leaves', () => agent.report.leaving)
  process.kill(agent.report.tor.pid!, 'SIGKILL')
  await left
})

test('alive while it can heal tor by itself, and not when three in a row stay silent', { skip }, async () => {
  const tor = join(base, 'tor')
  const program = (then: string): Promise<void> =>
    writeFile(tor, `#!/bin/sh\n[ "$1" = --version ] && exec ${TOR} --version\n${then}\n`, { mode: 0o755 })
  await program('exec sleep 1000')
  await declare(['web'])
  await start({ tor, silenceMs: 3_000 })
  assert.deepEqual(await probe('/livez'), [200, 'ok'])
  await until('it gives up', async () => (await probe('/livez'))[0] === 503)
  assert.ok(agent.report.tor.starts >= 3)
  assert.match((await probe('/livez'))[1], /tors in a row did not answer/)
  await program(`exec ${TOR} "$@"`)
  await until('a tor that answers', async () => added() && (await probe('/livez'))[0] === 200, 60_000)
})

test('--linger takes whole seconds', async () => {
  await start()
  const folders = ['topology', 'keys', 'data', 'run'].flatMap((name) => [`--${name}`, join(base, name)])
  const read = (...more: string[]) => readArguments([...folders, '--address', '127.0.0.1', ...more])
  assert.equal(read().lingerMs, 0)
  assert.equal(read('--linger', '90').lingerMs, 90_000)
  for (const wrong of ['-1', '1.5', 'soon', '86401', '']) {
    assert.throws(() => read(`--linger=${wrong}`), /--linger takes whole seconds from 0 to 86400/)
  }
})
