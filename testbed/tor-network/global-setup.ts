import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startTorNetwork, type TorNetwork } from './network.ts'

// For `node --test --test-global-setup=testbed/tor-network/global-setup.ts`: one network for all test files. The test
// processes start after this one has set the variable, and inherit it. A network that the variable names already is used.

let network: TorNetwork | undefined
let folder: string | undefined

export async function globalSetup(): Promise<void> {
  if (process.env.POSTERN_TEST_TOR_NETWORK) return
  folder = await mkdtemp(join(tmpdir(), 'ptn-'))
  try {
    network = await startTorNetwork({ state: folder })
    const { options, socksPort, client } = network
    const file = join(folder, 'network.json')
    await writeFile(file, JSON.stringify({ options, socksPort, client }))
    process.env.POSTERN_TEST_TOR_NETWORK = file
  } catch (error) {
    await globalTeardown()
    throw error
  }
}

export async function globalTeardown(): Promise<void> {
  if (folder === undefined) return
  delete process.env.POSTERN_TEST_TOR_NETWORK
  await network?.stop()
  await rm(folder, { recursive: true, force: true })
}
