import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { PosternError } from '../../core/errors.ts'

export interface StateLock {
  release(): void
}

/** A connection that nobody refers to any more is closed, and its lock with it: so they are kept here. */
const held = new Set<DatabaseSync>()

/**
 * Makes this process the only one that runs on a state folder. The kernel holds the lock (SQLite's lock on a file of
 * its own), so it ends with the process however that ends, and holds across containers that share the folder; the pid
 * beside it is only for the message.
 *
 * @throws PosternError `StateInUse`
 */
export function lockState(folder: string): StateLock {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const pidFile = join(folder, 'lock.pid')
  const db = new DatabaseSync(join(folder, 'lock.db'), { timeout: 0 })
  try {
    db.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    if (((error as { errcode?: number }).errcode ?? 0) % 256 !== BUSY) {
      const message = `${folder} cannot be locked: make it a folder that this user may write, or choose another`
      throw new PosternError('StorageFailed', message, { cause: error })
    }
    const pid = readPid(pidFile)
    const who = pid === undefined ? 'another process' : `process ${pid}`
    throw new PosternError(
      'StateInUse',
      `${folder} is in use by ${who}: stop it first, or choose another state folder`,
      {
        cause: error,
      },
    )
  }
  try {
    writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 })
  } catch {
    // A full disk must not keep anybody from starting: the lock is held already.
  }
  held.add(db)
  return {
    release() {
      if (held.delete(db)) db.close()
    },
  }
}

const BUSY = 5

function readPid(file: string): string | undefined {
  try {
    const text = readFileSync(file, 'utf8').trim()
    return /^\d{1,10}$/.test(text) ? text : undefined
  } catch {
    return undefined
  }
}
