import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Report } from './figure.ts'

const RUNS = 3
const BAR = 45
const POSTERN = join(import.meta.dirname, '..', 'bin', 'postern')

interface DemoOutput {
  ok: boolean
  total: number
  steps: { name: string; seconds: number }[]
}

/** `postern demo --once` from installed: seconds until a page has come through a real onion, and of each step. */
export async function demo(report: Report): Promise<void> {
  const runs: DemoOutput[] = []
  for (let run = 0; run < RUNS; run++) {
    // A demo that fails exits with 1: the reason is in what it printed, and in the error.
    const { stdout } = await promisify(execFile)(POSTERN, ['demo', '--once', '--output', 'json'])
    runs.push(JSON.parse(stdout) as DemoOutput)
  }
  for (const { name } of runs[0]!.steps) {
    const times = runs.map((run) => run.steps.find((step) => step.name === name)?.seconds ?? Number.NaN)
    report({ figure: `demo, ${name}, median of ${RUNS}`, value: median(times), unit: 's' })
  }
  const total = median(runs.map((run) => run.total))
  report({
    figure: `demo, page through a real onion, median of ${RUNS}`,
    value: total,
    unit: 's',
    bar: `<= ${BAR} s`,
    ok: total <= BAR,
  })
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}
