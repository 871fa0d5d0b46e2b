import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { lockState, type StateLock } from '../../cluster/embedded/lock.ts'
import { MAX_STATE_PATH } from '../../cluster/embedded/pods.ts'
import { PosternError } from '../../core/errors.ts'
import { UsageError } from '../errors.ts'

const MARKER = '.postern-demo'

/**
 * Makes a demo's state folder its own, and empty. A folder with anything else than an earlier demo's state in it is
 * left alone.
 *
 * @throws UsageError, or PosternError `StatePathTooLong`, `StateInUse`
 */
export function claimDemoFolder(state: string): StateLock {
  if (Buffer.byteLength(state) > MAX_STATE_PATH) {
    throw new PosternError(
      'StatePathTooLong',
      `the state folder ${state} is too long for the unix sockets below it (at most ${MAX_STATE_PATH} bytes): choose a shorter one, e.g. --state /tmp/postern-demo`,
    )
  }
  const before = existsSync(state) ? readdirSync(state) : []
  if (before.length > 0 && !before.includes(MARKER)) {
    throw new UsageError(
      `${state} is not empty and not of an earlier demo, whose state is wiped at the start: choose another with --state`,
    )
  }
  mkdirSync(state, { recursive: true, mode: 0o700 })
  // The marker first: a demo that is killed at any moment leaves a folder that the next one may wipe.
  writeFileSync(join(state, MARKER), 'The state of a postern demo. It is wiped when the next one starts.\n')
  const lock = lockState(state)
  for (const entry of readdirSync(state)) {
    if (entry !== MARKER && !entry.startsWith('lock.'))
      rmSync(join(state, entry), { recursive: true, force: true })
  }
  return lock
}
