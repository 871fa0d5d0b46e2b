import type { Process } from './types.ts'

/** A program that fault tests kill and start again with the same flags and data. */
export class Restartable {
  readonly #spawn: () => Promise<Process>
  #process: Process | undefined

  constructor(spawn: () => Promise<Process>) {
    this.#spawn = spawn
  }

  get running(): boolean {
    return this.#process?.running ?? false
  }

  /** Of the process that runs, or ran last. */
  get pid(): number | undefined {
    return this.#process?.pid
  }

  /** Resolves when it is ready; at once when it runs. */
  async start(): Promise<void> {
    if (!this.running) this.#process = await this.#spawn()
  }

  /** SIGTERM, SIGKILL after `grace` milliseconds. */
  async stop(grace?: number): Promise<void> {
    await this.#process?.stop(grace)
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    await this.#process?.kill()
  }
}
