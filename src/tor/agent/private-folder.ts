import { chmod, mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { PosternError } from '../../core/errors.ts'

/** The longest name below it is `/o/01234567`, and a socket's path has 107 bytes. */
const RUN_LIMIT = 90

/**
 * A folder that only this user can enter, as tor demands for its control socket. A mounted volume often belongs to
 * root: then it is a folder in it.
 *
 * @param options.keep the folder itself is left as it is; only its being there is seen to
 * @throws PosternError RunFolderUnusable; errors of the file system
 */
export async function privateFolder(path: string, options: { keep?: boolean } = {}): Promise<string> {
  await mkdir(path, { recursive: true, mode: 0o700 })
  if (options.keep) return path
  const mine = (await stat(path)).uid === process.getuid?.()
  const folder = mine ? path : join(path, 'p')
  if (Buffer.byteLength(folder) > RUN_LIMIT || /[\s"\\\p{Cc}]/u.test(folder)) {
    throw new PosternError(
      'RunFolderUnusable',
      `${folder} cannot hold sockets: give --run a path of at most ${RUN_LIMIT} bytes without blanks, such as /run/postern`,
    )
  }
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await chmod(folder, 0o700)
  return folder
}
