import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf } from '../../src/core/errors.ts'
import { freePorts } from '../../testbed/tor-network/ports.ts'

/** A real Prometheus for as long as a test, that scrapes every second what it is told. */

export interface Target {
  job: string
  /** host:port */
  address: string
  /** As the monitors would have them. */
  labels: Record<string, string>
}

export interface Sample {
  metric: Record<string, string>
  value: [number, string]
}

export class Prometheus implements AsyncDisposable {
  readonly #folder: string
  readonly #child: ChildProcess
  readonly #ended: Promise<void>
  readonly #url: string
  #output = ''

  /** @param rules files of rules, evaluated every second */
  static async start(targets: readonly Target[], rules: readonly object[] = []): Promise<Prometheus> {
    const prometheus = new Prometheus((await freePorts(1))[0]!, targets, rules)
    try {
      await prometheus.until('Prometheus to be ready', async () => {
        const { status } = await fetch(`${prometheus.#url}/-/ready`)
        return status === 200 ? [] : [`/-/ready: ${status}`]
      })
      return prometheus
    } catch (error) {
      await prometheus[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(port: number, targets: readonly Target[], rules: readonly object[]) {
    this.#folder = mkdtempSync(join(tmpdir(), 'postern-prometheus-'))
    this.#url = `http://127.0.0.1:${port}`
    // JSON is YAML.
    const write = (name: string, content: object): string => {
      writeFileSync(join(this.#folder, name), JSON.stringify(content))
      return join(this.#folder, name)
    }
    const config = write('prometheus.json', {
      global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
      rule_files: rules.map((content, index) => write(`rules-${index}.json`, content)),
      scrape_configs: [...new Set(targets.map(({ job }) => job))].map((job) => ({
        job_name: job,
        static_configs: targets
          .filter((target) => target.job === job)
          .map(({ address, labels }) => ({ targets: [address], labels })),
      })),
    })
    this.#child = spawn(
      'prometheus',
      [
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(this.#folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=warn',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: process.env.PATH, GOMAXPROCS: '1' } },
    )
    this.#child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
      this.#output += chunk
    })
    this.#ended = new Promise((done) => {
      this.#child.once('error', () => done())
      this.#child.once('close', () => done())
    })
  }

  /** What an expression gives now. */
  async query(expression: string): Promise<Sample[]> {
    return (await this.#ask<{ result: Sample[] }>(`query?query=${encodeURIComponent(expression)}`)).result
  }

  /** Alerts that wait or fire; and rules that could not be evaluated, by what is wrong. */
  async rules(): Promise<{ name: string; health: string; state: string }[]> {
    const { groups } = await this.#ask<{
      groups: { rules: { name: string; health: string; state: string }[] }[]
    }>('rules')
    return groups.flatMap(({ rules }) => rules.map(({ name, health, state }) => ({ name, health, state })))
  }

  /** Waits until nothing is missing; fails with what is. */
  async until(what: string, missing: () => Promise<readonly string[]>, milliseconds = 90_000): Promise<void> {
    const deadline = Date.now() + milliseconds
    for (;;) {
      const seen = await missing().catch((error: unknown) => [messageOf(error)])
      if (seen.length === 0) return
      if (Date.now() > deadline || this.#child.exitCode !== null) {
        throw new Error(`waited for ${what}; saw:\n${seen.join('\n')}\n${this.#output}`)
      }
      await new Promise((done) => setTimeout(done, 500))
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#ended
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #ask<T>(path: string): Promise<T> {
    const response = await fetch(`${this.#url}/api/v1/${path}`)
    const answer = (await response.json()) as { status: string; error?: string; data: T }
    if (answer.status !== 'success') throw new Error(`${path}: ${answer.error}`)
    return answer.data
  }
}
