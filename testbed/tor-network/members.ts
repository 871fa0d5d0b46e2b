import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { waitForBootstrap } from './bootstrap.ts'
import { endedEarly, spawnTor, type TorProcess } from './process.ts'
import { processOptions, type TorOptions, torrc } from './torrc.ts'

/** The tor processes of one network: folder NAME, NAME.torrc and NAME.log in the state folder. */
export class Members {
  /** Options that all of them share. */
  readonly shared: TorOptions
  readonly #state: string
  readonly #torBinary: string
  readonly #onStep: (step: string, detail?: string) => void
  readonly #processes = new Map<string, TorProcess>()
  readonly #failed = new AbortController()
  #stopping = false

  constructor(
    state: string,
    torBinary: string,
    shared: TorOptions,
    onStep: (step: string, detail?: string) => void,
  ) {
    this.#state = state
    this.#torBinary = torBinary
    this.shared = shared
    this.#onStep = onStep
  }

  /** Aborted, with the reason, once a process has ended by itself or `fail` was called. */
  get failed(): AbortSignal {
    return this.#failed.signal
  }

  fail(reason: unknown): void {
    this.#failed.abort(reason)
  }

  async start(name: string, own: TorOptions): Promise<void> {
    await this.#write(name, own)
    this.failed.throwIfAborted()
    const path = join(this.#state, name)
    const tor = spawnTor({ name, torrc: `${path}.torrc`, log: `${path}.log`, torBinary: this.#torBinary })
    this.#processes.set(name, tor)
    void tor.exited.then(async (how) => {
      if (this.#stopping) return
      this.#onStep('lost', `${name}: ${how}, see ${tor.log}`)
      this.fail(await endedEarly(tor, how))
    })
  }

  /** Process id of one that was started. */
  pid(name: string): number | undefined {
    return this.#processes.get(name)?.pid
  }

  /** Makes a process read its torrc again, a new one if given. */
  async reload(name: string, own?: TorOptions): Promise<void> {
    if (own !== undefined) await this.#write(name, own)
    this.#processes.get(name)?.reload()
  }

  /** Waits until a process is bootstrapped: at 75 % it has all directory information, at 100 % it has built a circuit. */
  async bootstrapped(name: string, percent: number, onProgress?: (progress: string) => void): Promise<void> {
    await waitForBootstrap({
      log: join(this.#state, `${name}.log`),
      percent,
      signal: this.failed,
      ...(onProgress === undefined ? {} : { onProgress }),
    })
  }

  /** Ends all of them; resolves once they are gone. */
  async stop(): Promise<void> {
    this.#stopping = true
    await Promise.all([...this.#processes.values()].map((tor) => tor.stop()))
  }

  async #write(name: string, own: TorOptions): Promise<void> {
    const path = join(this.#state, name)
    const text = torrc(this.shared, processOptions(path, process.pid), own)
    await writeFile(`${path}.torrc`, text, { mode: 0o600 })
  }
}

/**
 * Starts one tor more of a network that runs, in a folder of its own, and resolves once it can build circuits.
 *
 * @param shared options of the network
 * @throws PosternError as `startTorNetwork`
 */
export async function startMember(
  shared: TorOptions,
  folder: string,
  name: string,
  own: TorOptions,
): Promise<Members> {
  const members = new Members(folder, 'tor', shared, () => {})
  try {
    await members.start(name, own)
    await members.bootstrapped(name, 100)
    return members
  } catch (error) {
    await members.stop()
    throw members.failed.aborted ? members.failed.reason : error
  }
}
