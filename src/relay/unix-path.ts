import { lstat, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf, PosternError } from '../core/errors.ts'
import { connectSocket } from './dial.ts'

/** sockaddr_un has 108 bytes, the last one is NUL (unix(7)). */
const MAX_PATH_BYTES = 107

/**
 * Makes a path free to listen on: removes the socket that a process left behind, and nothing else.
 *
 * @throws PosternError `ListenFailed` when the path is too long, is something other than a socket, or is in use
 */
export async function freeUnixPath(path: string): Promise<void> {
  const length = Buffer.byteLength(path)
  if (length > MAX_PATH_BYTES) {
    const limit = `a unix socket's path may have ${MAX_PATH_BYTES}`
    throw refuse(
      path,
      `its path has ${length} bytes and ${limit}; choose a shorter folder, for example under /run`,
    )
  }
  try {
    const found = await lstat(path)
    if (!found.isSocket()) throw refuse(path, 'it exists and is no socket; remove it or choose another path')
    if (await answers(path))
      throw refuse(path, 'another process listens there; stop it or choose another path')
    await unlink(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return folderOf(path)
    if (error instanceof PosternError) throw error
    throw refuse(path, `${codeOf(error)}; check the folder's owner and mode`, error)
  }
}

/** Node would report a missing folder as EACCES, as it is on Windows. */
async function folderOf(path: string): Promise<void> {
  try {
    await lstat(dirname(path))
  } catch (error) {
    throw refuse(path, `${codeOf(error)}; make its folder first, with mode 0700`, error)
  }
}

async function answers(path: string): Promise<boolean> {
  try {
    const socket = await connectSocket({ path }, { timeoutMs: 1_000 })
    socket.destroy()
    return true
  } catch (error) {
    // A full backlog (EAGAIN) is a living process, too.
    return codeOf(error) === 'EAGAIN' || codeOf(error) === 'ETIMEDOUT'
  }
}

function refuse(path: string, why: string, cause?: unknown): PosternError {
  return new PosternError('ListenFailed', `cannot listen on ${path}: ${why}`, { cause })
}
