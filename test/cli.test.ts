import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'

/** The command as a user runs it, from the shell script on. */

const POSTERN = join(import.meta.dirname, '..', 'bin', 'postern')

interface Result {
  code: number
  stdout: string
  stderr: string
}

function run(...words: string[]): Promise<Result> {
  const env = { ...process.env, NO_COLOR: '1', POSTERN_STATE: '' }
  return new Promise((resolve) => {
    execFile(POSTERN, words, { env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr })
    })
  })
}

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'pct-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** Resolves once a child has written a text. */
function output(child: ChildProcess): { until(text: string): Promise<void>; text(): string } {
  let all = ''
  let check = (): void => {}
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      all += chunk
      check()
    })
  }
  return {
    text: () => all,
    until: (text) =>
      new Promise((resolve, reject) => {
        check = () => {
          if (all.includes(text)) resolve()
        }
        child.once('exit', (code) =>
          reject(new Error(`it exited with ${code} before it said '${text}':\n${all}`)),
        )
        check()
      }),
  }
}

test('mistakes on the command line are one line, without a stack, and exit with 2', async () => {
  const cases: [string[], RegExp][] = [
    [['upp', '.'], /unknown command 'upp'.*Did you mean up\?/],
    [['get'], /missing required argument 'kind'/],
    [['get', 'onionservces'], /did you mean 'onionservices'\?/],
    [['get', 'svc', '--wrong'], /unknown option '--wrong'/],
    [['get', 'svc', '-o', 'xml'], /Allowed choices are wide, yaml, json; see/],
    [['describe', 'svc'], /name the Service to describe/],
    [['up', '/does/not/exist'], /does not exist: create it/],
    [['demo', '--output', 'json'], /needs --once/],
    [['logs', 'x', '--tail', 'y'], /whole number/],
  ]
  await Promise.all(
    cases.map(async ([words, message]) => {
      const { code, stderr } = await run(...words)
      assert.equal(code, 2, words.join(' '))
      assert.match(stderr, /^postern: .*\n$/)
      assert.match(stderr, message)
    }),
  )
})

test('every command has help with an example', async () => {
  for (const command of ['up', 'demo', 'get', 'describe', 'delete', 'logs', 'operator', 'version']) {
    const { code, stdout } = await run(command, '--help')
    assert.equal(code, 0)
    assert.match(stdout, new RegExp(`Examples?:\n {2}\\$ postern ${command}`))
  }
})

test('a link to the script works, and a state that does not exist is said', async (t) => {
  const path = folder(t)
  symlinkSync(POSTERN, join(path, 'first'))
  symlinkSync('first', join(path, 'second'))
  const result = await new Promise<string>((resolve, reject) =>
    execFile(join(path, 'second'), ['version'], (error, stdout) =>
      error === null ? resolve(stdout) : reject(error),
    ),
  )
  assert.match(result, /^postern \d+\.\d+\.\d+ \(node /)
  const { code, stderr } = await run('get', 'svc', '--state', join(path, 'none'))
  assert.equal(code, 3)
  assert.match(stderr, /there is no state in .*postern up FOLDER/)
})

test('up keeps a machine as its folder says, and the other commands work beside it', async (t) => {
  const path = folder(t)
  const manifests = join(path, 'm')
  const state = join(path, 's')
  mkdirSync(manifests)
  const service = (port: string): string =>
    `apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec:\n  ports:\n    - port: ${port}\n`
  writeFileSync(join(manifests, 'web.yaml'), service('80'))
  writeFileSync(join(manifests, 'bad.yaml'), service('99999').replace('web', 'bad'))
  const up = spawn(POSTERN, ['up', manifests, '--state', state], { env: { ...process.env, NO_COLOR: '1' } })
  t.after(() => up.kill('SIGKILL'))
  const ended = new Promise((resolve) => up.once('exit', (code, signal) => resolve(code ?? signal)))
  const said = output(up)
  await said.until('Service default/web created (web.yaml)')
  await said.until('bad.yaml:6: Service default/bad: spec.ports[0].port: ')
  assert.equal(statSync(state).mode & 0o777, 0o700)

  const beside = (...words: string[]): Promise<Result> => run(...words, '--state', state)
  assert.match(
    (await beside('get', 'svc')).stdout,
    /^NAME +TYPE +CLUSTER-IP +PORT\(S\) +AGE\nweb +ClusterIP +<none> +80\/TCP +\d+s\n$/,
  )
  assert.equal(JSON.parse((await beside('get', 'svc/web', '-o', 'json')).stdout).metadata.name, 'web')
  const absent = await beside('describe', 'svc', 'wep')
  assert.equal(absent.code, 3)
  assert.match(absent.stderr, /Service default\/wep does not exist; did you mean 'web'\?/)
  assert.match((await beside('get', 'onion')).stderr, /^No onionservices in namespace default\.\n$/)
  const second = await run('up', manifests, '--state', state)
  assert.equal(second.code, 4)
  assert.match(second.stderr, new RegExp(`is in use by process ${up.pid}`))

  writeFileSync(join(manifests, 'web.yaml'), service('81'))
  await said.until('Service default/web changed (web.yaml)')
  rmSync(join(manifests, 'web.yaml'))
  await said.until('Service default/web removed (web.yaml)')

  up.kill('SIGTERM')
  assert.equal(await ended, 0, said.text())
})
