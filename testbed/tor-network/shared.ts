import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { PosternError } from '../../src/core/errors.ts'
import { startTorNetwork, type TorNetworkAccess } from './network.ts'

let shared: Promise<TorNetworkAccess> | undefined

/**
 * The Tor network of this test run. `global-setup.ts` has started one and POSTERN_TEST_TOR_NETWORK names its file; a test
 * file that runs alone gets one of its own, which ends with the file. Call it at the file's top level or in a `before`
 * outside of any suite, since the end is an `after` of whatever it is called in.
 */
export function sharedTorNetwork(): Promise<TorNetworkAccess> {
  shared ??= find()
  return shared
}

async function find(): Promise<TorNetworkAccess> {
  const file = process.env.POSTERN_TEST_TOR_NETWORK
  if (file !== undefined && file !== '') return read(file)
  const folder = await mkdtemp(join(tmpdir(), 'ptn-'))
  const network = await startTorNetwork({ state: folder })
  after(async () => {
    await network.stop()
    await rm(folder, { recursive: true, force: true })
  })
  return network
}

async function read(file: string): Promise<TorNetworkAccess> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as TorNetworkAccess
  } catch (cause) {
    throw new PosternError(
      'TorNetworkState',
      `POSTERN_TEST_TOR_NETWORK names ${file}, which cannot be read: unset it, or run with global-setup.ts`,
      { cause },
    )
  }
}
