import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { type Logger, SILENT } from '../../core/logger.ts'
import { type OnionPlan, TOPOLOGY_FILE, type TorTopology } from '../contract.ts'
import { generateOnionKey } from '../onion/key.ts'
import { TorAgent } from './agent.ts'

/** What numbers that grow make of a real tor, which is kept off the network. */

const skip = existsSync('/usr/bin/tor') ? false : 'tor is not installed: apt-get install tor'
const KEY = generateOnionKey()
const said: string[] = []
const note = (_fields: object, message: string): void => void said.push(message)
const log: Logger = { ...SILENT, info: note, warn: note, error: note }

let base: string
let agent: TorAgent | undefined
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'trn-'))
  for (const folder of ['topology', 'keys']) mkdirSync(join(base, folder))
  said.length = 0
})
afterEach(async () => {
  await agent?.close()
  agent = undefined
  rmSync(base, { recursive: true, force: true })
})

async function until(what: string, check: () => boolean): Promise<void> {
  for (const end = Date.now() + 30_000; !check(); await pause(20)) {
    if (Date.now() > end)
      assert.fail(`not in time: ${what}; ${said.join(' | ')}; ${JSON.stringify(agent?.report)}`)
  }
}

async function declare(
  daemon: Partial<TorTopology['daemon']>,
  onion: Partial<OnionPlan> = {},
): Promise<void> {
  const document: TorTopology = {
    version: 1,
    daemon: { name: 'tor', namespace: 'shop', logLevel: 'notice', options: {}, ...daemon },
    onions: [
      {
        name: 'web',
        address: KEY.address,
        since: 1,
        ports: [{ virtualPort: 80, endpoints: [{ host: '127.0.0.1', port: 9 }] }],
        ...onion,
      },
    ],
    proxies: [],
  }
  const before = agent?.report.applied
  writeFileSync(join(base, 'topology', '.new'), JSON.stringify(document))
  renameSync(join(base, 'topology', '.new'), join(base, 'topology', TOPOLOGY_FILE))
  if (agent !== undefined) await until('the topology to be in force', () => agent!.report.applied !== before)
}

const count = (text: string): number => said.filter((one) => one === text).length

test('an onion is published anew once a number, and tor is started anew once a number', {
  skip,
}, async () => {
  writeFileSync(join(base, 'keys', 'web.key'), KEY.secret)
  // Numbers that a fresh agent finds ask for nothing.
  await declare({ restarts: 3 }, { renewal: 2 })
  agent = await TorAgent.start({
    topology: join(base, 'topology'),
    keys: join(base, 'keys'),
    data: join(base, 'data'),
    run: join(base, 'run'),
    address: '127.0.0.1',
    network: false,
    log,
    reportPort: 0,
    metricsPort: 0,
  })
  await until('the onion to be added', () => agent!.report.onions[0]?.state === 'added')
  await declare({ restarts: 3 }, { renewal: 3 })
  await until('the onion to be replaced', () => count('onion replaced') === 1)
  assert.equal(agent.report.tor.starts, 1)

  await declare({ restarts: 4 }, { renewal: 3 })
  await until('another tor', () => agent!.report.tor.starts === 2)
  await until('the onion to be added to it', () => count('onion added') === 2)
  await declare({ restarts: 4, freshCircuits: 1 }, { renewal: 3 })
  await until('it to forget', () => count('tor forgets how long circuits took, and uses new ones') === 1)
  await until('the onion to be there', () => agent!.report.onions[0]?.state === 'added')
  assert.equal(agent.report.tor.starts, 2)
  assert.equal(count('onion replaced'), 1)
  // It was asked to end, and did.
  assert.equal(count('tor does not answer: it is ended and started again'), 0)
})
