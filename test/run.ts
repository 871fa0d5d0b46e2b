import { spawn } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { messageOf } from '../src/core/errors.ts'
import { buildPrograms } from '../testbed/kubernetes/build.ts'
import { buildingMissing } from '../testbed/kubernetes/go.ts'
import { leftOut } from '../testbed/kubernetes/left-out.ts'

/** Runs every test, or the files and options of node's runner that are given. */

const root = join(import.meta.dirname, '..')
const given = process.argv.slice(2)
const patterns = given.filter((argument) => !argument.startsWith('-'))
const files = patterns.length > 0 ? [] : ['src/**/*.test.ts', 'test/**/*.test.ts', 'testbed/**/*.test.ts']
const setup = 'testbed/global-setup.ts'

/** Does one of the files to run use the Kubernetes test bed? Such a file imports something of it by name. */
function usesKubernetes(): boolean {
  const read = (file: string) => file + readFileSync(resolve(root, file), 'utf8')
  return globSync([...patterns, ...files], { cwd: root }).some((file) =>
    /testbed\/kubernetes/.test(read(file)),
  )
}

// Before the tests, whose time is limited, and with both cores: the first build takes many minutes.
const build = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => build.abort(signal))
try {
  if (buildingMissing() === undefined && usesKubernetes()) await buildPrograms(undefined, build.signal)
} catch (error) {
  console.error(build.signal.aborted ? 'ended while the test bed was built' : messageOf(error))
  process.exit(1)
}

const folder = mkdtempSync(join(tmpdir(), 'postern-test-'))
const leftOutFile = join(folder, 'left-out')
const runner = spawn(
  process.execPath,
  [
    '--disable-warning=ExperimentalWarning',
    '--test',
    '--test-concurrency=2',
    `--test-timeout=${process.env.POSTERN_TEST_TIMEOUT ?? 600_000}`,
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    `--test-global-setup=${setup}`,
    ...given,
    ...files,
  ],
  { cwd: root, stdio: 'inherit', env: { ...process.env, POSTERN_TEST_LEFT_OUT: leftOutFile } },
)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => runner.kill(signal))
runner.on('error', (error) => {
  console.error(`the test runner could not be started: ${error.message}`)
  process.exitCode = 1
})
runner.on('exit', (code, signal) => {
  for (const line of leftOut(leftOutFile)) console.log(line)
  rmSync(folder, { recursive: true, force: true })
  process.exitCode = signal === null ? (code ?? 1) : 1
})
