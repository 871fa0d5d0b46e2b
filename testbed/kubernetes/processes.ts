import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf, PosternError } from '../../src/core/errors.ts'
import { dieWithParent, lastLines, searchPath, setpriv } from './run.ts'
import type { Process, SpawnOptions } from './types.ts'

/** The programs of one test bed. None outlives this process. */
export class Processes {
  readonly #namespace: string | undefined
  readonly #state: string
  readonly #signal: AbortSignal | undefined
  readonly #running: Process[] = []

  /** @param signal gives up every wait for readiness */
  constructor(options: { state: string; namespace: string | undefined; signal?: AbortSignal | undefined }) {
    this.#state = options.state
    this.#namespace = options.namespace
    this.#signal = options.signal
  }

  /**
   * Starts a program and waits until it is ready. A program that fails to become so is killed.
   *
   * @throws PosternError `TestbedProcess` with the last lines of its log; `TestbedTimeout`
   */
  async spawn(
    name: string,
    command: string,
    args: readonly string[],
    options: SpawnOptions = {},
  ): Promise<Process> {
    this.#signal?.throwIfAborted()
    const logs = join(this.#state, 'logs')
    await mkdir(logs, { recursive: true })
    const log = join(logs, `${name}.log`)
    const started = this.#start(name, log, [command, ...args], options.env ?? {})
    try {
      await this.#ready(started, options)
    } catch (error) {
      await started.kill()
      throw error
    }
    return started
  }

  /** The last started first; each has `grace` milliseconds. */
  async stopAll(grace = 5000): Promise<void> {
    while (this.#running.length > 0) await this.#running.at(-1)!.stop(grace)
  }

  #start(name: string, log: string, command: string[], env: Record<string, string>): Process {
    const within =
      this.#namespace === undefined ? [] : ['nsenter', `--net=/run/netns/${this.#namespace}`, '--']
    const fd = openSync(log, 'a', 0o600)
    let child: ChildProcess
    try {
      child = spawn(setpriv, [...dieWithParent, ...within, ...command], {
        stdio: ['ignore', fd, fd],
        cwd: this.#state,
        env: { PATH: searchPath(), HOME: this.#state, TMPDIR: process.env.TMPDIR ?? '/tmp', ...env },
        // Of a session of its own: Ctrl-C ends the caller, which stops the programs in order.
        detached: true,
      })
    } finally {
      closeSync(fd)
    }
    const exited = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(`could not be started: ${error.message}`))
      child.once('exit', (code, signal) => resolve(signal === null ? `code ${code}` : `signal ${signal}`))
    })
    const gone = () => child.pid === undefined || child.exitCode !== null || child.signalCode !== null
    const end = async (signal: NodeJS.Signals) => {
      if (!gone()) child.kill(signal)
      await exited
    }
    const started: Process = {
      name,
      pid: child.pid ?? -1,
      log,
      get running() {
        return !gone()
      },
      exited,
      stop: async (grace = 10_000) => {
        const force = setTimeout(() => child.kill('SIGKILL'), grace)
        await end('SIGTERM')
        clearTimeout(force)
      },
      kill: () => end('SIGKILL'),
    }
    this.#running.push(started)
    void exited.then(() => this.#running.splice(this.#running.indexOf(started), 1))
    return started
  }

  async #ready(started: Process, { ready, readyWithin = 60_000 }: SpawnOptions): Promise<void> {
    if (started.pid === -1)
      throw new PosternError('TestbedProcess', `${started.name} ${await started.exited}`)
    if (ready === undefined) return
    const limit = AbortSignal.timeout(readyWithin)
    const signal = this.#signal === undefined ? limit : AbortSignal.any([limit, this.#signal])
    let seen = 'it was not ready'
    while (started.running) {
      try {
        if (await ready(signal)) return
      } catch (error) {
        seen = messageOf(error)
      }
      this.#signal?.throwIfAborted()
      if (limit.aborted) {
        throw new PosternError(
          'TestbedTimeout',
          `${started.name} was not ready after ${readyWithin / 1000} s (${seen}); its log ${started.log} ends:\n${await tail(started.log)}`,
        )
      }
      await sleep(50)
    }
    throw new PosternError(
      'TestbedProcess',
      `${started.name} ended (${await started.exited}) before it was ready; its log ${started.log} ends:\n${await tail(started.log)}`,
    )
  }
}

async function tail(log: string): Promise<string> {
  return lastLines(await readFile(log, 'utf8').catch(() => ''))
}
