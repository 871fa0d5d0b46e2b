import { watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { PosternError } from '../../src/core/errors.ts'
import { logTail } from './process.ts'

const pollMs = 250
const limitMs = 120_000

/**
 * Waits until a tor says in its log that it is bootstrapped to `percent` (`fs.watch` with a slow poll behind it, since
 * not every file system reports changes).
 */
export async function waitForBootstrap(options: {
  log: string
  percent: number
  onProgress?: (progress: string) => void
  signal: AbortSignal
}): Promise<void> {
  const { log, percent, onProgress, signal } = options
  const done = Promise.withResolvers<void>()
  let said = ''
  const look = async () => {
    const text = await readFile(log, 'utf8').catch(() => '')
    const progress = [...text.matchAll(/Bootstrapped (\d+%)[^:\n]*(?:: ([^\n]+))?\n/g)].at(-1)
    if (progress === undefined) return
    const now = `${progress[1]} ${progress[2] ?? ''}`.trim()
    if (now !== said) onProgress?.((said = now))
    if (Number.parseInt(progress[1]!, 10) >= percent) done.resolve()
  }
  const onAbort = () => done.reject(signal.reason)
  signal.addEventListener('abort', onAbort)
  if (signal.aborted) onAbort()
  const watcher = watch(log, () => void look())
  watcher.on('error', () => watcher.close())
  const poll = setInterval(look, pollMs)
  const limit = setTimeout(async () => {
    done.reject(
      new PosternError(
        'TorNetworkTimeout',
        `a process of the Tor network did not bootstrap to ${percent} % within ${limitMs / 1000} s; its log ${log} ends:\n${await logTail(log)}`,
      ),
    )
  }, limitMs)
  try {
    await done.promise
  } finally {
    clearInterval(poll)
    clearTimeout(limit)
    watcher.close()
    signal.removeEventListener('abort', onAbort)
  }
}
