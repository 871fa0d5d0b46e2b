import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { PosternError } from '../core/errors.ts'

/** Daemons stand here on some systems, and an ordinary user's PATH leaves them out. */
const SYSTEM = ['/usr/local/sbin', '/usr/sbin', '/sbin']

/** PATH with the folders of daemons behind it. */
export function searchPath(path: string | undefined = process.env.PATH): string {
  const folders = (path ?? '').split(delimiter).filter((folder) => folder !== '')
  return [...folders, ...SYSTEM.filter((folder) => !folders.includes(folder))].join(delimiter)
}

/**
 * Path of a program.
 *
 * @param aptPackage what brings it on Debian and Ubuntu, for the message
 * @throws PosternError `ProgramMissing`
 */
export function requireProgram(name: string, aptPackage: string, path: string = searchPath()): string {
  for (const folder of path.split(delimiter)) {
    const file = join(folder, name)
    try {
      accessSync(file, constants.X_OK)
      return file
    } catch {
      // Not in this one.
    }
  }
  throw new PosternError(
    'ProgramMissing',
    `${name} is not installed: run 'sudo apt-get install ${aptPackage}', then start again`,
  )
}
