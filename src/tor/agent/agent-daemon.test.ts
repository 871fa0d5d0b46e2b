import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { SILENT } from '../../core/logger.ts'
import { TOPOLOGY_FILE, type TorTopology } from '../contract.ts'
import { ControlClient } from '../control/client.ts'
import { TorAgent } from './agent.ts'
import { readArguments } from './main.ts'
import { freePort } from './metrics-port.ts'

/** What an agent makes of the daemon's own settings while tor runs, on a network that leads nowhere. */

const skip = existsSync('/usr/bin/tor') ? false : 'tor is not installed: apt-get install tor'
const NOWHERE = `nowhere orport=1 no-v2 v3ident=${'A'.repeat(40)} 127.0.0.1:1 ${'B'.repeat(40)}`

let base: string
let agent: TorAgent | undefined
let client: ControlClient | undefined

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'td-'))
  for (const folder of ['topology', 'keys', 'keep']) mkdirSync(join(base, folder))
})
afterEach(async () => {
  await client?.close()
  await agent?.close()
  client = agent = undefined
  rmSync(base, { recursive: true, force: true })
})

async function until<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
  for (const end = Date.now() + 30_000; ; await pause(20)) {
    const found = await look()
    if (found) return found as NonNullable<typeof found>
    if (Date.now() > end)
      assert.fail(`not in time: ${what}; report: ${JSON.stringify(agent?.report, null, 1)}`)
  }
}

function declare(daemon: Partial<TorTopology['daemon']>): void {
  const document: TorTopology = {
    version: 1,
    daemon: {
      name: 'tor',
      namespace: 'shop',
      logLevel: 'notice',
      options: { DirAuthority: NOWHERE },
      ...daemon,
    },
    onions: [],
    proxies: [],
  }
  writeFileSync(join(base, 'topology', '.new'), JSON.stringify(document))
  renameSync(join(base, 'topology', '.new'), join(base, 'topology', TOPOLOGY_FILE))
}

async function start(address: string): Promise<ControlClient> {
  agent = await TorAgent.start({
    topology: join(base, 'topology'),
    keys: join(base, 'keys'),
    data: join(base, 'data'),
    keep: join(base, 'keep'),
    run: join(base, 'run'),
    address,
    log: SILENT,
    reportPort: 0,
    metricsPort: 0,
  })
  await until('a running tor', () => agent!.report.tor.running)
  client = await until('the control port', async () => {
    try {
      const one = await ControlClient.connect({ path: join(base, 'run', 'control') })
      await one.authenticate()
      return one
    } catch {
      return undefined
    }
  })
  return client
}

test('the log level and the ports for workloads change while tor runs, and it stays the same tor', {
  skip,
}, async () => {
  const address = '127.77.250.20'
  const [socks, http] = [await freePort(address), await freePort(address)]
  declare({})
  const control = await start(address)
  const { pid } = agent!.report.tor
  const log = async (): Promise<string | undefined> => (await control.getConf('Log')).Log?.join()
  assert.equal(await log(), 'notice stdout')
  assert.equal(agent!.report.access, undefined)

  declare({
    logLevel: 'debug',
    access: { socks: { port: socks, exit: 'Onions' }, httpConnect: { port: http, exit: 'All' } },
  })
  await until('both ports', () => agent!.report.access?.every(({ listening }) => listening))
  await until('the log level', async () => (await log()) === 'debug stdout')
  const listeners = async (): Promise<string> => {
    const { 'net/listeners/socks': one, 'net/listeners/httptunnel': other } = await control.getInfo(
      'net/listeners/socks',
      'net/listeners/httptunnel',
    )
    return `${one} ${other}`
  }
  assert.match(await listeners(), new RegExp(`unix:.*unix:.*"${address}:${socks}".*"${address}:${http}"`))

  declare({ logLevel: 'warn' })
  await until('the ports to be gone', async () => !(await listeners()).includes(address))
  await until('the log level', async () => (await log()) === 'warn stdout')
  assert.equal((await listeners()).match(/unix:/g)?.length, 2)
  assert.equal(agent!.report.tor.pid, pid)
  assert.equal(agent!.report.tor.starts, 1)
})

test("tor's folder is made in that of the pod, by and for the agent's user alone", { skip }, async () => {
  // As an emptyDir: open to all, and somebody else's where that can be had.
  const data = join(base, 'data')
  mkdirSync(data)
  chmodSync(data, 0o777)
  if (process.getuid!() === 0) chownSync(data, 65534, 65534)
  declare({})
  await start('127.0.0.1')
  const { uid, mode } = statSync(join(data, 'tor'))
  assert.deepEqual([uid, mode & 0o777], [process.getuid!(), 0o700])
  assert.ok(existsSync(join(data, 'tor', 'lock')), 'tor uses it')
})

test("tor's state is kept at the end, and taken up by the next pod", { skip }, async () => {
  declare({})
  await start('127.0.0.1')
  await agent!.close()
  const kept = readFileSync(join(base, 'keep', 'state'), 'utf8')
  assert.match(kept, /^TorVersion Tor 0\./m)
  // tor keeps what it does not know of in no state; what it does know it takes over.
  writeFileSync(join(base, 'keep', 'state'), `${kept}LastRotatedOnionKey 2020-01-02 03:04:05\n`)
  rmSync(join(base, 'data'), { recursive: true })
  const control = await start('127.0.0.1')
  assert.match(readFileSync(join(base, 'data', 'tor', 'state'), 'utf8'), /2020-01-02 03:04:05/)
  assert.ok((await control.getInfo('version')).version)
  assert.doesNotMatch(agent!.report.rejected ?? '', /guards/)
})

test('the folder is an argument of the agent, and may be left out', () => {
  const needed = ['--topology', 't', '--keys', 'k', '--data', 'd', '--run', 'r', '--address', '10.0.0.7']
  assert.equal(readArguments([...needed, '--keep', '/var/lib/kept']).keep, '/var/lib/kept')
  assert.equal('keep' in readArguments(needed), false)
})

test('a folder that cannot be used is told, and tor runs all the same', { skip }, async () => {
  writeFileSync(join(base, 'keep', 'state'), '<html>')
  declare({})
  await start('127.0.0.1')
  await until('the fault', () => agent!.report.rejected?.includes('new guards'))
})
