import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { layerMissing } from '../../testbed/kubernetes/left-out.ts'

/** Prometheus' own tools, where they are. */

/** Why tests that need Prometheus are left out; undefined when they are not. */
export function prometheusMissing(): string | undefined {
  const missing = ['prometheus', 'promtool'].filter(
    (name) => spawnSync(name, ['--version']).error !== undefined,
  )
  if (missing.length === 0) return undefined
  return layerMissing('the Prometheus layer', `no ${missing.join(' and no ')} (Debian's package prometheus)`)
}

/** A file of rules or tests in a folder that goes with the test. */
export class Scratch implements Disposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'postern-prometheus-'))

  write(name: string, content: object): string {
    const path = join(this.folder, name)
    // JSON is YAML.
    writeFileSync(path, JSON.stringify(content))
    return path
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/**
 * Runs promtool.
 *
 * @throws with all that it said when it is not content
 */
export function promtool(args: readonly string[], input: string = ''): string {
  const { status, stdout, stderr, error } = spawnSync('promtool', args, {
    input,
    encoding: 'utf8',
    timeout: 60_000,
  })
  if (status === 0) return `${stdout}${stderr}`
  throw new Error(`promtool ${args.join(' ')} ended with ${status ?? error?.message}:\n${stdout}${stderr}`)
}

/** Lint of what a process serves as `/metrics`. */
export function checkMetrics(text: string): void {
  promtool(['check', 'metrics'], text)
}
