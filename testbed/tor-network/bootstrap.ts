import { watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { PosternError } from '../../src/core/errors.ts'
import { logTail, type TorProcess } from './process.ts'

const pollMs = 250
const limitMs = 120_000

/**
 * Waits until `client` says that it is bootstrapped (its log; `fs.watch` with a slow poll behind it, since not every
 * file system reports changes). Any process of `all` that ends first is the error, with its last words.
 */
export async function waitForBootstrap(options: {
  client: TorProcess
  all: readonly TorProcess[]
  onProgress?: (progress: string) => void
  signal?: AbortSignal
}): Promise<void> {
  const { client, all, onProgress, signal } = options
  const done = Promise.withResolvers<void>()
  let said = ''
  const look = async () => {
    const text = await readFile(client.log, 'utf8').catch(() => '')
    const progress = [...text.matchAll(/Bootstrapped (\d+%)[^:\n]*(?:: ([^\n]+))?\n/g)].at(-1)
    if (progress === undefined) return
    const now = `${progress[1]} ${progress[2] ?? ''}`.trim()
    if (now !== said) onProgress?.((said = now))
    if (progress[1] === '100%') done.resolve()
  }
  const onAbort = () => done.reject(signal?.reason)
  signal?.addEventListener('abort', onAbort)
  if (signal?.aborted) onAbort()
  for (const tor of all) void tor.exited.then(async (how) => done.reject(await endedEarly(tor, how)))
  const watcher = watch(client.log, () => void look())
  watcher.on('error', () => watcher.close())
  const poll = setInterval(look, pollMs)
  const limit = setTimeout(async () => {
    done.reject(
      new PosternError(
        'TorNetworkTimeout',
        `the Tor network did not start within ${limitMs / 1000} s; the client's log ${client.log} ends:\n${await logTail(client.log)}`,
      ),
    )
  }, limitMs)
  try {
    await done.promise
  } finally {
    clearInterval(poll)
    clearTimeout(limit)
    watcher.close()
    signal?.removeEventListener('abort', onAbort)
  }
}

async function endedEarly(tor: TorProcess, how: string): Promise<PosternError> {
  const tail = await logTail(tor.log)
  const code = /address already in use/i.test(tail) ? 'TorNetworkPortTaken' : 'TorNetworkProcess'
  return new PosternError(code, `the tor process ${tor.name} ended (${how}); its log ${tor.log} ends:\n${tail}`)
}
