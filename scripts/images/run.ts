import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { searchPath } from '../../src/cli/programs.ts'
import { PosternError } from '../../src/core/errors.ts'

/** In one language, so that what is read does not depend on the user's. */
const env = { ...process.env, PATH: searchPath(), LC_ALL: 'C.UTF-8' }

/**
 * Runs a program to its end and gives its stdout.
 *
 * @throws PosternError `ImageProgram` with the end of what it wrote to stderr
 */
export async function run(program: string, args: readonly string[]): Promise<string> {
  try {
    const options = { env, maxBuffer: 64 << 20, timeout: 300_000 }
    return (await promisify(execFile)(program, [...args], options)).stdout
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string }
    const said = stderr?.trim().slice(-2000) || message
    throw new PosternError('ImageProgram', `${program} ${args.slice(0, 6).join(' ')} failed: ${said}`, {
      cause: error,
    })
  }
}
