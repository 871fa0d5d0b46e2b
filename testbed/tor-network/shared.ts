import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { PosternError } from '../../src/core/errors.ts'
import { startTorNetwork, type TorNetwork, type TorNetworkAccess } from './network.ts'

let shared: Promise<TorNetworkAccess> | undefined

/**
 * The Tor network of this test run. `global-setup.ts` has started one and POSTERN_TEST_TOR_NETWORK names its file; a test
 * file that runs alone gets one of its own, which ends with the file. Call it at the file's top level: the end is an
 * `after` of whatever it is called in.
 */
export function sharedTorNetwork(): Promise<TorNetworkAccess> {
  const file = process.env.POSTERN_TEST_TOR_NETWORK
  shared ??= file === undefined || file === '' ? startOwn() : read(file)
  return shared
}

async function startOwn(): Promise<TorNetworkAccess> {
  const ended = new AbortController()
  const starting = start(ended.signal)
  // Before anything is awaited, while the caller's place in the test file is still known.
  after(async () => {
    ended.abort()
    await starting.then((own) => own.end()).catch(() => {})
  })
  return (await starting).network
}

async function start(signal: AbortSignal): Promise<{ network: TorNetwork; end(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'ptn-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    const network = await startTorNetwork({ state: folder, signal })
    return { network, end: () => network.stop().then(remove) }
  } catch (error) {
    await remove()
    throw error
  }
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
