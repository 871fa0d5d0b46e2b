import { existsSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { PosternError } from '../core/errors.ts'
import { UsageError } from './errors.ts'

type Environment = Record<string, string | undefined>

/** The state folder: what `--state` says, else $POSTERN_STATE, else below XDG's folder for state. */
export function stateFolder(option: string | undefined, env: Environment = process.env): string {
  const named = option ?? env.POSTERN_STATE
  if (named !== undefined && named !== '') return resolve(named)
  // The XDG base directory specification says to ignore a relative path.
  const base = env.XDG_STATE_HOME?.startsWith('/') ? env.XDG_STATE_HOME : join(homedir(), '.local', 'state')
  return join(base, 'postern')
}

/**
 * @param folder of a state that some `postern up` or `postern demo` has made
 * @throws PosternError `StateNotFound`
 */
export function requireState(folder: string): void {
  if (existsSync(join(folder, 'objects.db'))) return
  throw new PosternError(
    'StateNotFound',
    `there is no state in ${folder}: start 'postern up FOLDER' first, or name the state folder with --state`,
  )
}

/** @throws UsageError when it is not a folder with manifests */
export function requireFolder(folder: string): string {
  const path = resolve(folder)
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined)
    throw new UsageError(`the folder ${path} does not exist: create it, or name another`)
  if (!stats.isDirectory())
    throw new UsageError(`${path} is not a folder: name the folder that the manifests are in`)
  return path
}
