import { generate } from './generate/main.ts'

/** Writes what follows from the sources: CRDs, RBAC, `deploy/`, the chart, references. `--check` only compares. */

const check = process.argv.includes('--check')
const faults = generate(check)
if (check && faults.length > 0) {
  console.log(faults.join('\n'))
  process.exitCode = 1
}
