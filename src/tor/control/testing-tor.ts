import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ControlClient } from './client.ts'

/** A real tor with the network off, in a directory of its own. For tests only. */
export interface TestTor extends AsyncDisposable {
  directory: string
  control: { path: string }
  cookieFile: string
  process: ChildProcess
  /** A connection that has authenticated. */
  client(): Promise<ControlClient>
  /** Resolves with tor's exit code once it ended, within a limit. */
  exited(): Promise<number | null>
}

/** Starts tor with more lines of its torrc, and waits until its control port answers. */
export async function startTestTor(torrc: (directory: string) => string[] = () => []): Promise<TestTor> {
  const directory = await mkdtemp(join(tmpdir(), 'postern-tor-'))
  const control = { path: join(directory, 'control') }
  const cookieFile = join(directory, 'cookie')
  const lines = [
    `DataDirectory ${directory}`,
    'DisableNetwork 1',
    'SocksPort 0',
    `ControlPort unix:${control.path}`,
    'CookieAuthentication 1',
    `CookieAuthFile ${cookieFile}`,
    `Log notice file ${join(directory, 'log')}`,
    ...torrc(directory),
  ]
  const file = join(directory, 'torrc')
  await writeFile(file, `${lines.join('\n')}\n`)
  const child = spawn('tor', ['--defaults-torrc', '/dev/null', '-f', file], { stdio: 'ignore' })
  const exit = once(child, 'exit').then(([code]) => code as number | null)
  const exited = async (): Promise<number | null> => {
    const limit = new AbortController()
    const late = delay(20_000, undefined, { signal: limit.signal }).then(() => {
      throw new Error('tor did not exit')
    })
    try {
      return await Promise.race([exit, late])
    } finally {
      limit.abort()
      late.catch(() => undefined)
    }
  }
  const client = async (): Promise<ControlClient> => {
    const connected = await ControlClient.connect(control)
    await connected.authenticate()
    return connected
  }
  const tor: TestTor = {
    directory,
    control,
    cookieFile,
    process: child,
    client,
    exited,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await exited()
      await rm(directory, { recursive: true, force: true })
    },
  }
  const end = Date.now() + 20_000
  for (;;) {
    try {
      await (await client()).close()
      return tor
    } catch (cause) {
      if (Date.now() > end || child.exitCode !== null) {
        const log = await readFile(join(directory, 'log'), 'utf8').catch(() => '(no log)')
        await tor[Symbol.asyncDispose]()
        throw new Error(`tor does not answer: ${log}`, { cause })
      }
      await delay(20)
    }
  }
}
