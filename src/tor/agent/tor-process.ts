import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Command, type ExitInfo, Supervisor } from '../../agent/supervisor.ts'
import { codeOf, messageOf, PosternError } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import type { TorState, TorTopology } from '../contract.ts'
import { ControlClient } from '../control/client.ts'
import type { TorEvent } from '../control/events.ts'
import { type Bootstrap, bootstrapOfEvent, bootstrapOfPhase } from './bootstrap.ts'
import { LiveSettings } from './live-settings.ts'
import { readLogLine } from './log-line.ts'
import { torVersion } from './tor-version.ts'
import { managedSettings, type TorPaths, torrc, userSettings } from './torrc.ts'

export interface TorProcessOptions {
  tor: string
  paths: TorPaths
  /** Lets a tor that was just got hold of onto the network, where it may be. */
  openNetwork(control: ControlClient): Promise<void>
  /** What tor says, without what nobody is to know. */
  redact(line: string): string
  log: Logger
  /** `state` or `rejected` may have changed. */
  onChange(): void
  /** There is a control connection; `fresh`: to a tor that was just started and has nothing. */
  onAttached(control: ControlClient, fresh: boolean): void
  /** The control connection is gone; `died`: and so is tor. */
  onDetached(died: boolean): void
  onEvent(event: TorEvent): void
  /** A tor that runs and cannot be talked to for so long is ended and started again; default 60 s. */
  silenceMs?: number
}

const EVENTS = ['HS_DESC', 'STATUS_CLIENT', 'ORCONN', 'GUARD']
const SILENCE_MS = 60_000
/** So many tors in a row that could not be talked to: the fault is not tor's. */
const SILENT_LIVES = 3
/** tor ends within milliseconds. */
const ORDERLY_END_MS = 5_000
/** A killed process is gone long before. */
const KILLED_MS = 60_000
const run = promisify(execFile)

/**
 * One tor, kept running, and two control connections to it: one does nothing but own it, so that no fault of the
 * other, which does the work, ends the process.
 */
export class TorProcess {
  readonly #options: TorProcessOptions
  readonly #supervisor: Supervisor
  readonly #managed = new LiveSettings()
  readonly #user = new LiveSettings()
  readonly #unpublished = new LiveSettings()
  #daemon: TorTopology['daemon'] | undefined
  #state: TorState = { running: false, bootstrapped: false, progress: 0, starts: 0 }
  #refusedOptions: string[] = []
  #owner: ControlClient | undefined
  #worker: ControlClient | undefined
  /** Aborted when the process that it speaks of ends. */
  #life = new AbortController()
  #settling: Promise<void> = Promise.resolve()
  #lastWarning: string | undefined
  #stopping = false
  #publishing = true
  /** In a row. */
  #silentLives = 0
  #killedAt: number | undefined
  /** This tor was just started and nobody has had hold of it. */
  #fresh = true

  constructor(options: TorProcessOptions) {
    this.#options = options
    this.#supervisor = new Supervisor({
      prepare: () => this.#prepare(),
      onStart: (pid) => this.#started(pid),
      onExit: (exit) => this.#exited(exit),
      onFailure: (error) => {
        options.log.error({ code: codeOf(error), error: messageOf(error) }, 'tor cannot be started')
        this.#set({ running: false, reason: codeOf(error) ?? 'TorUnusable', message: messageOf(error) })
      },
      onLine: (line) => {
        const { level, text } = readLogLine(options.redact(line))
        if (level === 'warn' || level === 'error') this.#lastWarning = text.slice(0, 300)
        options.log[level]({ from: 'tor' }, text)
      },
    })
  }

  get state(): TorState {
    return { ...this.#state }
  }

  /** The connection that works, while there is one. */
  get worker(): ControlClient | undefined {
    return this.#worker
  }

  /** What of the user's options is not in force, and why. */
  get rejected(): string[] {
    const groups = [this.#managed, this.#user, this.#unpublished].map(({ rejected }) => rejected)
    return [...this.#refusedOptions, ...groups].filter((text) => text !== undefined)
  }

  /**
   * Why only a new agent can help, or undefined. A tor that cannot be started, ends, or hangs is none of that: it
   * is started again here, as often as it takes.
   */
  get stuck(): string | undefined {
    if (this.#killedAt !== undefined && performance.now() - this.#killedAt > KILLED_MS) {
      return `tor (process ${this.#supervisor.pid}) was killed since it did not answer, and is still there`
    }
    if (this.#silentLives < SILENT_LIVES) return undefined
    return `${this.#silentLives} tors in a row did not answer on the control port`
  }

  /** Starts tor at the first call; later ones change the options that differ, while it runs. */
  configure(daemon: TorTopology['daemon']): void {
    this.#daemon = daemon
    this.#refusedOptions = userSettings(daemon.options).refused
    if (this.#worker !== undefined) void this.#settle(this.#worker).catch(() => {})
    this.#supervisor.start()
    // What was wrong with the last start may be mended.
    this.#supervisor.retryNow()
  }

  /**
   * From now on tor uploads no descriptor, also when introduction points change, and whatever the user's options
   * say: so a successor's stay the newest.
   */
  stopPublishing(): void {
    this.#publishing = false
    if (this.#worker !== undefined) void this.#settle(this.#worker).catch(() => {})
  }

  /** Ends a tor, by force where it does not end by itself; it is started again. */
  restart(): void {
    const { pid } = this.#supervisor
    if (pid === undefined) return
    this.#supervisor.signal('SIGTERM')
    setTimeout(() => {
      if (this.#supervisor.pid === pid && !this.#stopping) this.kill()
    }, ORDERLY_END_MS).unref()
  }

  /** Ends a tor that does not answer any more; it is started again. */
  kill(): void {
    if (this.#supervisor.pid !== undefined) this.#killedAt ??= performance.now()
    this.#options.log.error(
      { pid: this.#supervisor.pid },
      'tor does not answer: it is ended and started again',
    )
    this.#supervisor.signal('SIGKILL')
  }

  async stop(): Promise<void> {
    this.#stopping = true
    await this.#supervisor.stop()
    await Promise.all([this.#worker?.close(), this.#owner?.close()])
  }

  async #prepare(): Promise<Command> {
    const { tor, paths } = this.#options
    const daemon = this.#daemon!
    this.#set({ version: await torVersion(tor) })
    await mkdir(paths.data, { recursive: true, mode: 0o700 })
    // A socket of the tor before this one must not be taken for its successor's.
    await rm(paths.control, { force: true })
    const user = userSettings(daemon.options).settings
    await writeFile(paths.torrc, torrc(daemon, user, paths, process.pid), { mode: 0o600 })
    const args = ['--defaults-torrc', '/dev/null', '-f', paths.torrc]
    this.#managed.startedWith(managedSettings(daemon))
    this.#user.startedWith(user)
    this.#unpublished.startedWith([])
    const problem = user.length === 0 ? undefined : await verify(tor, args)
    if (problem !== undefined) {
      // Without them it might connect where its user never wanted it to: another network, past a proxy or a bridge.
      throw new PosternError(
        'OptionsRefused',
        `tor does not take the daemon's options, and is not started without them; correct spec.options: ${problem}`,
      )
    }
    this.#options.onChange()
    return { command: tor, args }
  }

  #started(pid: number): void {
    this.#life = new AbortController()
    this.#lastWarning = undefined
    this.#set({ running: true, pid, starts: this.#supervisor.starts })
    this.#options.log.info({ pid, version: this.#state.version }, 'tor started')
    void this.#attach(this.#life.signal)
  }

  #exited({ code, signal }: ExitInfo): void {
    this.#life.abort()
    this.#killedAt = undefined
    void this.#owner?.close()
    this.#owner = undefined
    const how = signal === null ? `with code ${code}` : `by ${signal}`
    const { pid: _pid, summary: _summary, ...rest } = this.#state
    this.#state = { ...rest, running: false, bootstrapped: false, progress: 0 }
    this.#set({
      reason: 'TorExited',
      message: `tor ended ${how}${this.#lastWarning === undefined ? '' : `; it said: ${this.#lastWarning}`}`,
    })
    this.#options.log[this.#stopping ? 'info' : 'warn']({ code, signal }, 'tor ended')
    this.#options.onDetached(true)
  }

  /** Gets hold of a started tor, and of its control port again whenever that connection is lost. */
  async #attach(life: AbortSignal): Promise<void> {
    this.#fresh = true
    let heard = performance.now()
    let wait = 10
    while (!life.aborted) {
      try {
        if (this.#owner === undefined) await this.#own(life)
        const worker = await this.#connect(life)
        try {
          this.#worker = worker
          await this.#open(worker, life)
          const ended = await worker.closed
          if (!life.aborted) {
            if (!this.#stopping)
              this.#options.log.warn({ error: messageOf(ended) }, 'the control connection was lost')
            this.#options.onDetached(false)
          }
          heard = performance.now()
          wait = 10
        } finally {
          this.#worker = undefined
          await worker.close()
        }
      } catch (error) {
        if (life.aborted) return
        this.#options.log.debug({ error: messageOf(error) }, 'the control port is not usable yet')
        if (performance.now() - heard > (this.#options.silenceMs ?? SILENCE_MS)) {
          this.#silentLives += 1
          this.kill()
          return
        }
      }
      await pause(wait, undefined, { signal: life }).catch(() => {})
      wait = Math.min(1000, wait * 2)
    }
  }

  async #own(life: AbortSignal): Promise<void> {
    const owner = await this.#connect(life)
    try {
      await owner.takeOwnership()
    } catch (error) {
      await owner.close()
      throw error
    }
    this.#owner = owner
    void owner.closed.then(() => {
      if (this.#owner === owner) this.#owner = undefined
    })
  }

  async #connect(life: AbortSignal): Promise<ControlClient> {
    const control = await ControlClient.connect({ path: this.#options.paths.control }, { signal: life })
    await control.authenticate()
    return control
  }

  async #open(worker: ControlClient, life: AbortSignal): Promise<void> {
    worker.onEvent((event) => {
      if (event.type === 'STATUS_CLIENT') this.#bootstrap(bootstrapOfEvent(event))
      this.#options.onEvent(event)
    })
    await worker.setEvents(EVENTS)
    await this.#settle(worker)
    await this.#options.openNetwork(worker)
    life.throwIfAborted()
    const phase = await worker.getInfo('status/bootstrap-phase')
    life.throwIfAborted()
    const { reason: _reason, message: _message, ...rest } = this.#state
    this.#state = rest
    const fresh = this.#fresh
    this.#fresh = false
    this.#silentLives = 0
    this.#options.onAttached(worker, fresh)
    if (!life.aborted) this.#bootstrap(bootstrapOfPhase(phase['status/bootstrap-phase'] ?? ''))
    this.#options.onChange()
  }

  /** Brings the options of the running tor up to date, one change after the other. */
  #settle(control: ControlClient): Promise<void> {
    const next = this.#settling.then(async () => {
      const daemon = this.#daemon!
      await this.#managed.apply(control, managedSettings(daemon))
      await this.#user.apply(control, userSettings(daemon.options).settings)
      if (!this.#publishing) await this.#unpublished.apply(control, [['PublishHidServDescriptors', ['0']]])
      this.#options.onChange()
    })
    this.#settling = next.catch(() => {})
    return next
  }

  #bootstrap(news: Bootstrap | undefined): void {
    if (news === undefined) return
    const progress = Math.max(this.#state.progress, news.progress)
    this.#set({ progress, bootstrapped: progress === 100, summary: news.summary })
  }

  #set(change: Partial<TorState>): void {
    this.#state = { ...this.#state, ...change }
    this.#options.onChange()
  }
}

/** What tor says against a torrc, or undefined. */
async function verify(tor: string, args: string[]): Promise<string | undefined> {
  try {
    await run(tor, ['--verify-config', ...args], { timeout: 20_000, maxBuffer: 1024 * 1024 })
    return undefined
  } catch (error) {
    const output = (error as { stdout?: unknown }).stdout
    const lines = typeof output === 'string' ? output.split('\n').map(readLogLine) : []
    const said = lines.filter(({ level }) => level === 'warn' || level === 'error').map(({ text }) => text)
    return (said.join(' ') || messageOf(error)).slice(0, 500)
  }
}
