import { spawn } from 'node:child_process'
import { join } from 'node:path'

/** Runs every test, or the files and options of node's runner that are given. */

const root = join(import.meta.dirname, '..')
const given = process.argv.slice(2)
const files = given.some((argument) => !argument.startsWith('-'))
  ? []
  : ['src/**/*.test.ts', 'test/**/*.test.ts', 'testbed/**/*.test.ts']
const setup = 'testbed/tor-network/global-setup.ts'

const runner = spawn(
  process.execPath,
  [
    '--disable-warning=ExperimentalWarning',
    '--test',
    '--test-concurrency=2',
    `--test-timeout=${process.env.POSTERN_TEST_TIMEOUT ?? 180_000}`,
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    `--test-global-setup=${setup}`,
    ...given,
    ...files,
  ],
  { cwd: root, stdio: 'inherit' },
)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => runner.kill(signal))
runner.on('error', (error) => {
  console.error(`the test runner could not be started: ${error.message}`)
  process.exitCode = 1
})
runner.on('exit', (code, signal) => {
  process.exitCode = signal === null ? (code ?? 1) : 1
})
