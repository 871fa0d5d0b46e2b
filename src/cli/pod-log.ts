import { createReadStream, existsSync, statSync, watch } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { logPath } from '../cluster/embedded/pod-state.ts'
import { onStop } from './signals.ts'

export interface LogRequest {
  state: string
  namespace: string
  pod: string
  follow: boolean
  /** Lines; undefined: all. */
  tail?: number | undefined
}

/** Writes a pod's output to stdout, with `follow` until a signal. */
export async function printLog({ state, namespace, pod, follow, tail }: LogRequest): Promise<void> {
  const path = logPath(state, namespace, pod)
  if (!existsSync(path) && !follow) {
    console.error(`Pod ${pod} has not written anything yet.`)
    return
  }
  let at = 0
  if (tail === undefined) {
    if (existsSync(`${path}.1`)) await copy(`${path}.1`, 0)
  } else at = await startOfTail(path, tail)
  at = await copy(path, at)
  if (follow) await followFrom(path, at)
}

/** Copies from a position to the end; the position of the end. */
async function copy(path: string, from: number): Promise<number> {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size <= from) return size
  await pipeline(createReadStream(path, { start: from, end: size - 1 }), process.stdout, { end: false })
  return size
}

async function followFrom(path: string, from: number): Promise<void> {
  const stop = onStop()
  let at = from
  let work = Promise.resolve()
  const more = (): void => {
    work = work.then(async () => {
      const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
      // The file was turned over at its limit: what came last stands in the older part now.
      if (size < at) {
        await copy(`${path}.1`, at)
        at = 0
      }
      at = await copy(path, at)
    })
    work.catch(() => stop.dispose())
  }
  const watcher = watch(dirname(path), more)
  more()
  await stop.asked
  watcher.close()
  await work
  stop.dispose()
}

const BLOCK = 64 * 1024

/** Position of the n-th last line of a file. */
export async function startOfTail(path: string, lines: number): Promise<number> {
  if (!existsSync(path)) return 0
  const file = await open(path)
  try {
    let at = (await file.stat()).size
    if (lines === 0) return at
    let left = lines
    let last = true
    const buffer = Buffer.alloc(BLOCK)
    while (at > 0) {
      const start = Math.max(0, at - BLOCK)
      const { bytesRead } = await file.read(buffer, 0, at - start, start)
      for (let index = bytesRead - 1; index >= 0; index--) {
        if (buffer[index] !== 10) {
          last = false
          continue
        }
        // The line end at the very end of the file ends its last line, and begins none.
        if (last) last = false
        else if (--left === 0) return start + index + 1
      }
      at = start
    }
    return 0
  } finally {
    await file.close()
  }
}
