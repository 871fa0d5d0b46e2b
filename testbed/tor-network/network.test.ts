import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { waitForBootstrap } from './bootstrap.ts'
import { fetchEventually, fetchThroughSocks } from './fetch.ts'
import { startTorNetwork } from './network.ts'
import { spawnTor } from './process.ts'
import { sharedTorNetwork } from './shared.ts'
import { torrc } from './torrc.ts'

const MAIN = resolve(import.meta.dirname, 'main.ts')
const network = await sharedTorNetwork()

test('a daemon with the options bootstraps, and its onion is fetched through socksPort', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ptm-'))
  const server = createServer((request, response) => response.end(`hello at ${request.url}`)).listen(
    0,
    '127.0.0.1',
  )
  await once(server, 'listening')
  const service = join(folder, 'onion')
  mkdirSync(service, { mode: 0o700 })
  const log = join(folder, 'log')
  const own = {
    DataDirectory: join(folder, 'data'),
    SocksPort: '0',
    Log: 'notice stdout',
    HiddenServiceDir: service,
    HiddenServicePort: `80 127.0.0.1:${(server.address() as AddressInfo).port}`,
  }
  writeFileSync(join(folder, 'torrc'), torrc(network.options, own))
  const tor = spawnTor({ name: 'service', torrc: join(folder, 'torrc'), log, torBinary: 'tor' })
  try {
    await waitForBootstrap({ log, percent: 100, signal: AbortSignal.timeout(60_000) })
    const host = readFileSync(join(service, 'hostname'), 'utf8').trim()
    const { socksPort } = network
    const reply = await fetchEventually({ socksPort, host, port: 80, path: '/door' })
    assert.equal(reply.body, 'hello at /door')
    const nowhere = `${'a'.repeat(56)}.onion`
    await assert.rejects(fetchThroughSocks({ socksPort, host: nowhere, port: 80 }), {
      code: 'SocksRefused',
      message: /SOCKS reply 0x/,
    })
  } finally {
    await tor.stop()
    server.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

test('by hand, beside another network: one line of JSON, ends on SIGTERM', async () => {
  await inFolder(async (state) => {
    const main = byHand(state, '--json')
    const [line] = await once(createInterface(main.stdout!), 'line')
    const document = JSON.parse(line) as { options: Record<string, string>; socksPort: number }
    assert.equal(document.options.DirAuthority?.split('\n').length, 3)
    assert.ok(document.socksPort > 1024)
    // 8 of tor, and the one that was started here.
    assert.equal(processesOf(state).length, 9)
    main.kill('SIGTERM')
    assert.deepEqual(await once(main, 'exit'), [0, null])
    await gone(state)
  })
})

test('a kill -9 leaves no process behind', async () => {
  await inFolder(async (state) => {
    const main = byHand(state)
    for await (const step of createInterface(main.stdout!)) if (step.startsWith('vote')) break
    assert.ok(processesOf(state).length >= 8)
    main.kill('SIGKILL')
    await gone(state)
  })
})

test('an abort while it starts ends everything', async () => {
  await inFolder(async (state) => {
    const abort = new AbortController()
    const onStep = (step: string) =>
      step === 'start' && setTimeout(() => abort.abort(new Error('enough')), 200)
    await assert.rejects(startTorNetwork({ state, signal: abort.signal, onStep }), { message: 'enough' })
    await gone(state)
  })
})

test('errors name the process or the folder that is wrong', async () => {
  await inFolder(async (state) => {
    await assert.rejects(startTorNetwork({ state, torBinary: '/nowhere/tor' }), {
      code: 'TorNetworkProgram',
      message: /\/nowhere\/tor was not found/,
    })
    await assert.rejects(startTorNetwork({ state: join(state, 'x'.repeat(100)) }), {
      code: 'TorNetworkState',
      message: /too long for unix sockets/,
    })
    await assert.rejects(startTorNetwork({ state: join(state, 'a b') }), { code: 'TorNetworkState' })
  })
})

test('bad arguments are refused with what to do', async () => {
  const child = spawn(process.execPath, [MAIN, '--sate', 'x'], { stdio: ['ignore', 'ignore', 'pipe'] })
  let text = ''
  child.stderr.on('data', (chunk) => {
    text += chunk
  })
  const [code] = await once(child, 'close')
  assert.equal(code, 2)
  assert.match(text, /tor-network: .*--sate/)
  assert.match(text, /--state DIR/)
})

function byHand(state: string, ...more: string[]): ChildProcess {
  return spawn(process.execPath, [MAIN, '--state', state, ...more], { stdio: ['ignore', 'pipe', 'inherit'] })
}

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ptm-'))
  try {
    await body(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Processes whose command line names the folder. */
function processesOf(folder: string): string[] {
  return readdirSync('/proc').filter((entry) => {
    if (!/^\d+$/.test(entry)) return false
    try {
      return readFileSync(`/proc/${entry}/cmdline`, 'utf8').includes(folder)
    } catch {
      return false
    }
  })
}

async function gone(folder: string): Promise<void> {
  const deadline = Date.now() + 20_000
  while (processesOf(folder).length > 0) {
    if (Date.now() > deadline) assert.fail(`still there: ${processesOf(folder).join(', ')}`)
    await new Promise((done) => setTimeout(done, 50))
  }
}
