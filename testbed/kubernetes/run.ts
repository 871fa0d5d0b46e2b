import { spawn } from 'node:child_process'
import { codeOf, PosternError } from '../../src/core/errors.ts'

export interface RunOptions {
  input?: string
  cwd?: string
  /** Instead of the caller's environment. */
  env?: NodeJS.ProcessEnv
  signal?: AbortSignal
  /** Shown in errors instead of the program and its arguments. */
  called?: string
}

const maxOutput = 64 * 1024 * 1024

/**
 * Runs a program to its end and gives what it wrote to stdout. It dies with the caller.
 *
 * @throws PosternError `ProgramMissing`; `ProgramFailed` with its code and the last lines of what it said
 */
export async function run(
  command: string,
  args: readonly string[] = [],
  options: RunOptions = {},
): Promise<string> {
  const { input = '', cwd, env = process.env, signal, called = [command, ...args].join(' ') } = options
  const child = spawn(setpriv, [...dieWithParent, command, ...args], {
    stdio: 'pipe',
    env: { ...env, PATH: searchPath(env) },
    ...(cwd === undefined ? {} : { cwd }),
    ...(signal === undefined ? {} : { signal, killSignal: 'SIGKILL' }),
  })
  const out: Buffer[] = []
  let size = 0
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size <= maxOutput) out.push(chunk)
    else child.kill('SIGKILL')
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-tailBytes)))
  // A program that ends without reading its input makes the pipe fail; its exit code tells more.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const how = await new Promise<number | string>((resolve, reject) => {
    child.once('error', (error) => {
      signal?.aborted
        ? reject(signal.reason)
        : reject(
            codeOf(error) === 'ENOENT'
              ? new PosternError('ProgramMissing', `${setpriv} is missing: install util-linux (Linux only)`)
              : error,
          )
    })
    child.once('close', (code, killed) => resolve(code ?? `signal ${killed}`))
  })
  const stdout = Buffer.concat(out).toString()
  if (how === 0) return stdout
  if (how === 127) throw new PosternError('ProgramMissing', `${command} was not found on PATH: install it`)
  const about = size > maxOutput ? `wrote more than ${maxOutput} bytes` : `ended with code ${how}`
  throw new PosternError('ProgramFailed', `${called} ${about}: ${lastLines(said === '' ? stdout : said)}`)
}

export const setpriv = 'setpriv'
/** Arguments of setpriv: the kernel kills the program as soon as the calling thread ends, whatever way that ends. */
export const dieWithParent: readonly string[] = ['--pdeathsig', 'KILL', '--']
const tailBytes = 64 * 1024

/** The end of a text, for error messages. */
export function lastLines(text: string, count = 15): string {
  return text.slice(-tailBytes).trimEnd().split('\n').slice(-count).join('\n')
}

/** Debian keeps ip, iptables and sysctl in sbin, which a user's PATH often lacks. */
export function searchPath(env: NodeJS.ProcessEnv = process.env): string {
  return `${env.PATH ?? '/usr/local/bin:/usr/bin:/bin'}:/usr/sbin:/sbin`
}
