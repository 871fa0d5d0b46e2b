import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../src/core/errors.ts'
import { nearest } from '../src/core/nearest.ts'
import type { Figure, Report } from './figure.ts'

/**
 * `npm run -s bench -- [NAME…] [--json]`: one line a figure, with its bar and whether it holds; 1 when one does not.
 * A benchmark NAME is a module NAME.ts beside this one, with a function of that name.
 */

const NAMES = [
  'publish',
  'relay',
  'store',
  'demo',
  'agent',
  'images',
  'node',
  'operator',
  'watch',
  'topology',
  'bridges',
]

const words = process.argv.slice(2)
const json = words.includes('--json')
const asked = words.filter((word) => word !== '--json')
const unknown = asked.find((word) => !NAMES.includes(word))
if (unknown !== undefined) {
  const near = nearest(unknown, NAMES)
  const hint = near === undefined ? `there are ${NAMES.join(', ')}` : `did you mean '${near}'?`
  console.error(`bench: there is no benchmark '${unknown}'; ${hint}`)
  process.exit(2)
}

for (const name of asked.length > 0 ? asked : NAMES) {
  const file = join(import.meta.dirname, `${name}.ts`)
  if (!existsSync(file)) {
    console.error(`bench: ${name} is not there yet`)
    continue
  }
  try {
    const module = (await import(file)) as Record<string, (report: Report) => Promise<void>>
    await module[name]!((figure) => print(name, figure))
  } catch (error) {
    process.exitCode = 1
    console.error(`bench: ${name} failed: ${messageOf(error)}`)
  }
}

function print(bench: string, { figure, value, unit, bar, ok }: Figure): void {
  if (ok === false) process.exitCode = 1
  if (json) {
    const known = Number.isNaN(value) ? null : value
    console.log(JSON.stringify({ bench, figure, value: known, unit, bar: bar ?? null, ok: ok ?? null }))
    return
  }
  const mark = ok === undefined ? ' ' : ok ? '✓' : '✗'
  const shown = Number.isNaN(value) ? '' : `${rounded(value)} ${unit}`
  console.log(`${mark} ${figure.padEnd(64)} ${shown.padStart(16)}${bar === undefined ? '' : `   bar ${bar}`}`)
}

/** Three digits that count. */
function rounded(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3)
}
