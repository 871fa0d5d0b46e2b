import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** Everything that can be said of the sources without running them: one line each, and what is wrong. */

const root = join(import.meta.dirname, '..')
const bin = (name: string): string => join(root, 'node_modules', '.bin', name)

interface Check {
  name: string
  command: string[]
  /** What to run when it fails. */
  fix?: string
}

const checks: Check[] = [
  { name: 'types', command: [bin('tsc'), '-p', '.', '--noEmit'] },
  { name: 'style', command: [bin('biome'), 'ci', '--colors=off', '.'], fix: 'make format' },
  {
    name: 'architecture',
    command: [process.execPath, '--test', '--test-reporter=spec', 'test/architecture.test.ts'],
  },
]
if (existsSync(join(root, 'scripts', 'generate.ts'))) {
  checks.push({
    name: 'generated files',
    command: [process.execPath, 'scripts/generate.ts', '--check'],
    fix: 'npm run generate',
  })
}

for (const { name, command, fix } of checks) {
  const started = performance.now()
  const result = spawnSync(command[0]!, command.slice(1), {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 << 20,
  })
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  if (result.status === 0) {
    console.log(`ok      ${name} (${seconds} s)`)
    continue
  }
  process.exitCode = 1
  console.log(`FAILED  ${name} (${seconds} s)${fix === undefined ? '' : `; perhaps '${fix}' helps`}`)
  console.log(`${result.error?.message ?? ''}${result.stdout ?? ''}${result.stderr ?? ''}`.trimEnd())
}
