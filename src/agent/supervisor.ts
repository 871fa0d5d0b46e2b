import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { PosternError } from '../core/errors.ts'

const SETPRIV = '/usr/bin/setpriv'
const LINE_LIMIT = 16_384

export interface Command {
  command: string
  args: string[]
  env?: NodeJS.ProcessEnv
  cwd?: string
}

export interface ExitInfo {
  code: number | null
  signal: NodeJS.Signals | null
  /** Set when the command could not be started at all. */
  error?: Error
}

export interface Backoff {
  /** First pause in milliseconds; doubles at each failure in a row. */
  minMs: number
  maxMs: number
  /** A run of at least this long starts the pauses anew. */
  resetAfterMs: number
}

export interface SupervisorOptions {
  /** Called before every start; when it throws, nothing is started and it is tried again after the pause. */
  prepare(): Promise<Command> | Command
  onStart?(pid: number): void
  onExit?(exit: ExitInfo): void
  /** `prepare` threw, or the program could not be executed. */
  onFailure?(error: unknown): void
  /** One line of the child's output, without its end, cut at 16 KiB. */
  onLine?(line: string): void
  backoff?: Partial<Backoff>
}

const DEFAULT_BACKOFF: Backoff = { minMs: 250, maxMs: 30_000, resetAfterMs: 20_000 }

/**
 * Keeps one child process running: starts it, starts it again with growing pauses when it ends, and ends it. The
 * child dies with this process even if that is killed: `setpriv --pdeathsig KILL` where that program exists.
 */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #backoff: Backoff
  #child: ChildProcess | undefined
  #timer: NodeJS.Timeout | undefined
  #failures = 0
  #starts = 0
  #running = false
  #wanted = false

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#backoff = { ...DEFAULT_BACKOFF, ...options.backoff }
  }

  /** Process id while it runs. */
  get pid(): number | undefined {
    return this.#running ? this.#child?.pid : undefined
  }

  /** Times that the child was started. */
  get starts(): number {
    return this.#starts
  }

  start(): void {
    if (this.#wanted) return
    this.#wanted = true
    void this.#launch()
  }

  /** Sends a signal to the child, if it runs. */
  signal(signal: NodeJS.Signals): void {
    if (this.#running) this.#child?.kill(signal)
  }

  /** Starts at once what waits for its pause to end. */
  retryNow(): void {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    void this.#launch()
  }

  /** SIGTERM, and SIGKILL after the grace; resolves once the child has ended. It is not started again. */
  async stop(graceMs = 5_000): Promise<void> {
    this.#wanted = false
    clearTimeout(this.#timer)
    this.#timer = undefined
    const child = this.#child
    if (child === undefined || !this.#running) return
    await new Promise<void>((resolve) => {
      const killer = setTimeout(() => child.kill('SIGKILL'), graceMs)
      child.once('exit', () => {
        clearTimeout(killer)
        resolve()
      })
      child.kill('SIGTERM')
    })
  }

  async #launch(): Promise<void> {
    let command: Command
    try {
      command = await this.#options.prepare()
    } catch (error) {
      this.#options.onFailure?.(error)
      this.#again()
      return
    }
    if (!this.#wanted) return
    const [program, args] = dyingWithUs(command)
    const started = performance.now()
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(command.env === undefined ? {} : { env: command.env }),
      ...(command.cwd === undefined ? {} : { cwd: command.cwd }),
    })
    this.#child = child
    let ended = false
    const end = (exit: ExitInfo): void => {
      if (ended) return
      ended = true
      this.#running = false
      if (performance.now() - started >= this.#backoff.resetAfterMs) this.#failures = 0
      this.#options.onExit?.(exit)
      this.#again()
    }
    child.once('error', (error) => {
      if (child.pid !== undefined) return
      this.#options.onFailure?.(
        new PosternError('CannotExecute', `${command.command} could not be started: ${error.message}`),
      )
      end({ code: null, signal: null, error })
    })
    child.once('exit', (code, signal) => end({ code, signal }))
    for (const stream of [child.stdout, child.stderr]) {
      if (stream !== null) readLines(stream, (line) => this.#options.onLine?.(line))
    }
    if (child.pid !== undefined) {
      this.#running = true
      this.#starts += 1
      this.#options.onStart?.(child.pid)
    }
  }

  #again(): void {
    if (!this.#wanted || this.#timer !== undefined) return
    const pause = Math.min(this.#backoff.maxMs, this.#backoff.minMs * 2 ** Math.min(this.#failures, 16))
    this.#failures += 1
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#launch()
    }, pause)
  }
}

function dyingWithUs(command: Command): [program: string, args: string[]] {
  // setpriv replaces itself by the command, so the process id stays the one that spawn gave.
  if (!existsSync(SETPRIV)) return [command.command, command.args]
  return [SETPRIV, ['--pdeathsig', 'KILL', '--', command.command, ...command.args]]
}

function readLines(stream: Readable, onLine: (line: string) => void): void {
  let rest = ''
  stream.setEncoding('utf8')
  stream.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = (lines.pop() ?? '').slice(0, LINE_LIMIT)
    for (const line of lines) onLine(line.slice(0, LINE_LIMIT).trimEnd())
  })
  stream.on('end', () => {
    if (rest !== '') onLine(rest)
  })
  stream.on('error', () => {})
}
