import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { generateIdentity, identityToRecipient } from 'age-encryption'
import { SECRET } from '../../src/cluster/kinds.ts'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'
import { startMember } from '../../testbed/tor-network/members.ts'
import { sharedTorNetwork } from '../../testbed/tor-network/shared.ts'
import { backend, onionService, startUp, torDaemon, type Up, webServer } from './up.ts'
import { visitUntil } from './visit.ts'

const network = await sharedTorNetwork()
const folder = mkdtempSync(join(tmpdir(), 'pkt-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const MAIN = resolve(import.meta.dirname, '../../src/cli/main.ts')

/** `postern keys` beside an `up` that runs. @returns what it printed for programs, and for people */
function keys(up: Up, ...words: string[]): Promise<{ stdout: string; stderr: string }> {
  return promisify(execFile)(process.execPath, [MAIN, 'keys', ...words, '--state', up.state])
}

const site = (port: number, spec: object = {}): string =>
  `${onionService('web', spec)}---\n${backend('web', port)}`

async function withTor(files: Record<string, string> = {}): Promise<Up> {
  const up = startUp({ 'tor.yaml': torDaemon(network.options), ...files })
  await up.until('its state', () => up.list(SECRET).length > 0)
  return up
}

test('a backup is restored on another machine, which then has the address', async () => {
  const identity = await generateIdentity()
  writeFileSync(join(folder, 'identity'), `${identity}\n`, { mode: 0o600 })
  const file = join(folder, 'backup.age')
  using server = await webServer('the same address')
  let hostname: string
  {
    await using first = await withTor({ 'web.yaml': site(server.port) })
    hostname = await first.published('web')
    await keys(first, 'export', '-A', '--recipient', await identityToRecipient(identity), '--output', file)
  }
  await using second = await withTor()
  await keys(second, 'import', file, '--identity-file', join(folder, 'identity'))
  second.write('web.yaml', site(server.port))
  assert.equal(await second.published('web'), hostname)
  await visitUntil(network.socksPort, hostname, 'the same address')
  await keys(second, 'check')
})

test('a HiddenServiceDir of a tor of its own moves in, and its visitors notice nothing', async () => {
  using server = await webServer('moved in')
  const hidden = join(folder, 'hidden')
  mkdirSync(hidden, { mode: 0o700 })
  const old = await startMember(network.options, folder, 'old', {
    HiddenServiceDir: hidden,
    HiddenServicePort: `80 127.0.0.1:${server.port}`,
  })
  const hostname = readFileSync(join(hidden, 'hostname'), 'utf8').trim()
  await visitUntil(network.socksPort, hostname, 'moved in')
  await using up = await withTor()
  const { stdout } = await keys(up, 'import', hidden, '--name', 'web-key')
  assert.match(stdout, /privateKeySecret:\n {4}name: web-key/)
  up.write('web.yaml', site(server.port, { privateKeySecret: { name: 'web-key' } }))
  assert.equal(await up.published('web'), hostname)
  await old.stop()
  await visitUntil(network.socksPort, hostname, 'moved in')
})

test('rotated: both addresses lead to it and stand in its status', async () => {
  using server = await webServer('two addresses')
  await using up = await withTor({ 'web.yaml': site(server.port) })
  const before = await up.published('web')
  await keys(up, 'rotate', 'web', '--overlap', '2d')
  const now = await up.until('another address', () => {
    const { hostname } = up.get(ONION_SERVICE, 'web')?.status ?? {}
    return hostname !== before && hostname
  })
  await up.until('the former one to be found', () => {
    const former = up.get(ONION_SERVICE, 'web')?.status?.former
    return former?.length === 1 && former[0]?.hostname === before && former[0].published
  })
  await up.published('web')
  for (const address of [before, now]) await visitUntil(network.socksPort, address, 'two addresses')
  // Its manifest is read again, and says nothing of the keys.
  up.write('web.yaml', `${site(server.port)}\n# touched`)
  await keys(up, 'check')
  assert.equal(up.get(ONION_SERVICE, 'web')?.status?.hostname, now)
})
