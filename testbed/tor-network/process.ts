import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { PosternError } from '../../src/core/errors.ts'

/** A running tor. */
export interface TorProcess {
  readonly name: string
  /** Its log file, which also holds what it said before it had read its configuration. */
  readonly log: string
  readonly pid: number | undefined
  /** Resolves to how it ended (`exit code 1`, `signal SIGKILL`, …), never rejects. */
  readonly exited: Promise<string>
  /** Makes it read its torrc again. */
  reload(): void
  /** SIGTERM, and SIGKILL after 3 s. Resolves once it is gone. */
  stop(): Promise<void>
}

const setpriv = '/usr/bin/setpriv'
const tailBytes = 64 * 1024

/**
 * Starts a program that the kernel kills as soon as the calling process ends, whatever way that ends (Linux
 * PR_SET_PDEATHSIG through util-linux setpriv; it follows the calling thread, so call it from the main thread).
 */
export function spawnTor(options: {
  name: string
  torrc: string
  log: string
  torBinary: string
}): TorProcess {
  const fd = openSync(options.log, 'a', 0o600)
  const child = spawn(
    setpriv,
    ['--pdeathsig', 'KILL', '--', options.torBinary, '--defaults-torrc', '/dev/null', '-f', options.torrc],
    { stdio: ['ignore', fd, fd], env: { PATH: searchPath(), HOME: '/nonexistent' } },
  )
  closeSync(fd)
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`could not be started: ${error.message}`))
    child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`))
  })
  return {
    name: options.name,
    log: options.log,
    pid: child.pid,
    exited,
    reload: () => void child.kill('SIGHUP'),
    stop: async () => {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGTERM')
      const force = setTimeout(() => child.kill('SIGKILL'), 3000)
      await exited
      clearTimeout(force)
    },
  }
}

/** Runs a helper program to its end and gives its standard output. It too dies with the caller. */
export async function runToEnd(
  command: readonly string[],
  input: string,
  signal?: AbortSignal,
): Promise<string> {
  const name = command[0] ?? ''
  const child = spawn(setpriv, ['--pdeathsig', 'KILL', '--', ...command], {
    stdio: 'pipe',
    env: { PATH: searchPath(), HOME: '/nonexistent' },
    ...(signal === undefined ? {} : { signal }),
  })
  let out = ''
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out = (out + text).slice(-tailBytes)))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-tailBytes)))
  // A program that ends without reading its input makes the pipe fail; its exit code tells more.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  let code: unknown
  try {
    ;[code] = await once(child, 'close')
  } catch (cause) {
    signal?.throwIfAborted()
    throw new PosternError(
      'TorNetworkProgram',
      `${setpriv} could not be run: it is part of util-linux, Linux only`,
      {
        cause,
      },
    )
  }
  if (code === 127) {
    throw new PosternError(
      'TorNetworkProgram',
      `${name} was not found: install the package tor, or name its path`,
    )
  }
  if (code !== 0) {
    throw new PosternError('TorNetworkProgram', `${name} ended with code ${code}:\n${lastLines(said + out)}`)
  }
  return out
}

/** The end of a log file, for error messages; empty when there is none. */
export async function logTail(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch(() => '')
  return lastLines(text)
}

/** The error for a tor that ended by itself. */
export async function endedEarly(tor: TorProcess, how: string): Promise<PosternError> {
  const tail = await logTail(tor.log)
  const code = /address already in use/i.test(tail) ? 'TorNetworkPortTaken' : 'TorNetworkProcess'
  return new PosternError(
    code,
    `the tor process ${tor.name} ended (${how}); its log ${tor.log} ends:\n${tail}`,
  )
}

function lastLines(text: string): string {
  return text.slice(-tailBytes).trimEnd().split('\n').slice(-15).join('\n')
}

/** Debian keeps tor in /usr/sbin, which a user's PATH often lacks. */
function searchPath(): string {
  return `${process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin'}:/usr/sbin:/sbin`
}
