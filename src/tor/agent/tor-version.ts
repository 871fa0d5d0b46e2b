import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { codeOf, messageOf, PosternError } from '../../core/errors.ts'
import { olderThan } from '../version.ts'

const run = promisify(execFile)

/** The oldest series that still bootstraps and knows all that is asked of it. */
export const OLDEST_TOR = '0.4.8'

const INSTALL = 'install it with `apt-get install tor`'

/**
 * Version of a tor program, e.g. `0.4.9.11`.
 *
 * @throws PosternError TorMissing, TorTooOld, TorUnusable
 */
export async function torVersion(program: string): Promise<string> {
  let output: string
  try {
    output = (await run(program, ['--version'], { timeout: 20_000, maxBuffer: 65_536 })).stdout
  } catch (error) {
    if (codeOf(error) === 'ENOENT') {
      throw new PosternError('TorMissing', `there is no tor at ${program}: ${INSTALL}`)
    }
    throw new PosternError('TorUnusable', `${program} --version failed: ${messageOf(error).slice(0, 300)}`)
  }
  const version = readTorVersion(output)
  if (version === undefined) {
    throw new PosternError('TorUnusable', `${program} does not say which version of tor it is: ${INSTALL}`)
  }
  if (olderThan(version, OLDEST_TOR)) {
    throw new PosternError(
      'TorTooOld',
      `${program} is tor ${version}, and ${OLDEST_TOR} or newer is needed: update it with \`apt-get update && apt-get install tor\` (deb.torproject.org has current ones)`,
    )
  }
  return version
}

/** The version in the output of `tor --version`. */
export function readTorVersion(output: string): string | undefined {
  return /^Tor version (\d+\.\d+\.\d+(?:\.\d+)?)/m.exec(output)?.[1]
}
