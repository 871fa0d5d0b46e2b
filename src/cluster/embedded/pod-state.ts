import { mkdirSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { PosternError } from '../../core/errors.ts'

/**
 * Bytes. Below the state a socket still needs `/p/<id>/v/<volume>/<name>`, and sun_path ends at 107 (unix(7)).
 */
export const MAX_STATE_PATH = 64

/** @throws PosternError StatePathTooLong */
export function checkStatePath(path: string): void {
  const length = Buffer.byteLength(path)
  if (length <= MAX_STATE_PATH) return
  throw new PosternError(
    'StatePathTooLong',
    `The state folder ${path} is ${length} bytes long, and unix sockets below it allow ${MAX_STATE_PATH}. Choose a shorter path.`,
  )
}

/** Makes the folders of the state, for this user only. Returns its real path. @throws PosternError StatePathTooLong */
export function openState(path: string): string {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const real = realpathSync(path)
  checkStatePath(real)
  for (const folder of ['p', 'claims', 'logs'])
    mkdirSync(join(real, folder), { recursive: true, mode: 0o700 })
  return real
}

/** Where a pod's files are: short, for the sake of its sockets. */
export function podFolder(state: string, id: string): string {
  return join(state, 'p', id)
}

/** Removes the folders of pods that nobody wants any more, e.g. deleted while the runner was not there. */
export function clearPodFolders(state: string, kept: ReadonlySet<string>): void {
  for (const id of readdirSync(join(state, 'p'))) {
    if (!kept.has(id)) rmSync(podFolder(state, id), { recursive: true, force: true })
  }
}

/** Where the output of a pod's containers is kept; an older part may stand beside it as `.1`. */
export function logPath(state: string, namespace: string, name: string): string {
  return join(state, 'logs', `${namespace}_${name}.log`)
}

/** Little on purpose: what the user's shell holds, tokens included, is none of a pod's business. */
export function defaultEnvironment(): Record<string, string> {
  const env: Record<string, string> = {}
  for (const name of ['PATH', 'LANG', 'TZ']) {
    const value = process.env[name]
    if (value !== undefined) env[name] = value
  }
  return env
}
