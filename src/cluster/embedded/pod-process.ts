import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { timestamp } from '../../core/conditions.ts'
import { codeOf, messageOf } from '../../core/errors.ts'
import { CONFIG_ERROR } from './pod-fields.ts'
import type { Launch } from './pod-launch.ts'
import { killMarked, killQuietly, POD_MARKER, STATE_MARKER } from './pod-leftovers.ts'
import { LastLine, type PodLogFile } from './pod-log.ts'

export interface ContainerState {
  waiting?: { reason: string; message: string }
  running?: { startedAt: string }
}

export interface ProcessOptions {
  /** Asked anew at each start, so that changed environment counts; throws what the container waits for. */
  launch: () => Launch
  log: PodLogFile
  /** Real path of the state. */
  state: string
  /** `namespace/pod/container` */
  identity: string
  /** After every change of `state`, `running` or `restarts`. */
  changed: () => void
}

const SETPRIV = '/usr/bin/setpriv'
const FIRST_DELAY = 200
const LONGEST_DELAY = 30_000
const STEADY = 60_000

/** One container as a process group of its own: started, restarted with back-off, ended with all its children. */
export class ContainerProcess {
  readonly #options: ProcessOptions
  #state: ContainerState = { waiting: { reason: 'ContainerCreating', message: 'Not started yet.' } }
  #child: ChildProcess | undefined
  #ended: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #stopping = false
  #failures = 0
  #restarts = 0
  #why: string | undefined

  constructor(options: ProcessOptions) {
    this.#options = options
  }

  get state(): ContainerState {
    return this.#state
  }

  get restarts(): number {
    return this.#restarts
  }

  get running(): boolean {
    return this.#state.running !== undefined
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Starts the process, or waits with a reason. Does nothing while it runs or waits for its back-off. */
  start(): void {
    if (this.#stopping || this.#child !== undefined || this.#timer !== undefined) return
    let launch: Launch
    try {
      launch = this.#options.launch()
    } catch (error) {
      this.#wait(codeOf(error) ?? CONFIG_ERROR, messageOf(error))
      return
    }
    this.#spawn(launch)
  }

  /** Holds the container back with a reason, until the next `start`. */
  hold(reason: string, message: string): void {
    if (this.#child === undefined && this.#timer === undefined) this.#wait(reason, message)
  }

  /** Ends the running process, e.g. after a failed liveness probe; the usual back-off follows. */
  restart(why: string, grace: number): void {
    if (this.#child === undefined || this.#why !== undefined) return
    this.#why = why
    void this.#terminate(this.#child, grace)
  }

  /** SIGTERM to the process, then, at its end or after the grace, SIGKILL to the group. @param grace milliseconds */
  async stop(grace: number): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#child !== undefined) await this.#terminate(this.#child, grace)
    await this.#ended
    this.#wait('Stopped', 'Stopped by the pod runner.')
  }

  #wait(reason: string, message: string): void {
    if (this.#state.waiting?.reason === reason && this.#state.waiting.message === message) return
    this.#state = { waiting: { reason, message } }
    this.#options.changed()
  }

  #spawn({ argv, env, cwd }: Launch): void {
    const { log, state, identity } = this.#options
    // The kernel ends the process when we are killed ourselves; what it had started is found at the next start.
    const guarded = existsSync(SETPRIV) ? [SETPRIV, '--pdeathsig', 'KILL', '--', ...argv] : argv
    const started = Date.now()
    const last = new LastLine()
    let child: ChildProcess
    try {
      child = spawn(guarded[0]!, guarded.slice(1), {
        cwd,
        env: { ...env, [STATE_MARKER]: state, [POD_MARKER]: identity },
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
    } catch (error) {
      this.#backOff(started, `could not be started: ${messageOf(error)}`)
      return
    }
    this.#child = child
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('error', () => {})
      stream?.on('data', (chunk: Buffer) => {
        log.write(chunk)
        last.push(chunk)
      })
    }
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
    const exit = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(`could not be started: ${error.message}`))
      child.once('exit', (code, signal) => {
        resolve(signal === null ? `exited with code ${code}` : `was ended by ${signal}`)
      })
    })
    this.#ended = exit.then(async (how) => {
      await this.#sweep(child)
      // Its last words may still be in the pipe.
      await Promise.race([closed, sleep(1000, undefined, { ref: false })])
      this.#child = undefined
      const line = last.text
      const why = this.#why
      this.#why = undefined
      this.#backOff(started, `${why ?? how}${line === '' ? '' : `; last line: ${line}`}`)
    })
    this.#state = { running: { startedAt: timestamp(started) } }
    this.#options.changed()
  }

  /** Nothing of the group, and nothing that left the group, may live on beside a new process. */
  async #sweep(child: ChildProcess): Promise<void> {
    if (child.pid !== undefined) killQuietly(-child.pid, 'SIGKILL')
    const { state, identity } = this.#options
    await killMarked([`${STATE_MARKER}=${state}`, `${POD_MARKER}=${identity}`])
  }

  #backOff(started: number, how: string): void {
    if (this.#stopping) return
    if (Date.now() - started >= STEADY) this.#failures = 0
    const delay = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** Math.min(this.#failures, 20))
    this.#failures += 1
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#restarts += 1
      this.start()
    }, delay)
    this.#wait('CrashLoopBackOff', `Restarts in ${delay} ms: ${how}`)
  }

  async #terminate(child: ChildProcess, grace: number): Promise<void> {
    if (child.pid === undefined) return this.#ended
    const { pid } = child
    // Only the leader is asked, as in a cluster: it knows best how to end its children.
    if (child.exitCode === null && child.signalCode === null) killQuietly(pid, 'SIGTERM')
    const force = setTimeout(() => killQuietly(-pid, 'SIGKILL'), grace)
    try {
      await this.#ended
    } finally {
      clearTimeout(force)
    }
  }
}
