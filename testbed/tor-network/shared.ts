import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { startTorNetwork, type TorNetworkAccess } from './network.ts'

/** Names the file that tells the test files of one run how to reach its network. */
const VARIABLE = 'POSTERN_TEST_TOR_NETWORK'

let own: Promise<TorNetworkAccess> | undefined

/** The network of this test run; a test file that runs alone starts one, and ends it after its tests. */
export function sharedTorNetwork(): Promise<TorNetworkAccess> {
  const file = process.env[VARIABLE]
  if (file !== undefined) return Promise.resolve(JSON.parse(readFileSync(file, 'utf8')))
  own ??= startOwn()
  return own
}

async function startOwn(): Promise<TorNetworkAccess> {
  const shared = await startShared()
  after(() => shared.stop())
  return shared.access
}

/** Starts a network in a folder of its own and makes it the one of this process and its children. */
export async function startShared(): Promise<{ access: TorNetworkAccess; stop(): Promise<void> }> {
  const state = mkdtempSync(join(tmpdir(), 'ptn-'))
  try {
    const network = await startTorNetwork({ state })
    const access = { options: network.options, socksPort: network.socksPort, client: network.client }
    const file = join(state, 'access.json')
    writeFileSync(file, JSON.stringify(access))
    process.env[VARIABLE] = file
    return {
      access,
      async stop() {
        delete process.env[VARIABLE]
        await network.stop()
        rmSync(state, { recursive: true, force: true })
      },
    }
  } catch (error) {
    rmSync(state, { recursive: true, force: true })
    throw error
  }
}
