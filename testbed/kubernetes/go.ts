import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { PosternError } from '../../src/core/errors.ts'
import { run } from './run.ts'

/** Why nothing can be built here, in a few words for "…: the test bed's layers are left out"; undefined if it can. */
export function buildingMissing(env: NodeJS.ProcessEnv = process.env): string | undefined {
  if (env.POSTERN_TESTBED === 'off') return 'POSTERN_TESTBED=off'
  if (process.platform !== 'linux') return 'not Linux'
  return onPath('go', env) ? undefined : 'no Go'
}

/** @throws PosternError `TestbedOff`, `GoMissing` */
export function mustBuild(env: NodeJS.ProcessEnv = process.env): void {
  const why = buildingMissing(env)
  if (why === undefined) return
  if (why === 'no Go') {
    throw new PosternError(
      'GoMissing',
      'no go on PATH: install Go 1.26 or later to build the Kubernetes test bed, or set POSTERN_TESTBED=off',
    )
  }
  throw new PosternError(
    'TestbedOff',
    `the Kubernetes test bed is off (${why}): unset POSTERN_TESTBED on Linux`,
  )
}

/** The version of Go that builds a module, e.g. go1.26.8: its go.mod may ask for another one than the installed. */
export async function goVersion(folder: string): Promise<string> {
  return (await run('go', ['env', 'GOVERSION'], { cwd: folder })).trim()
}

/** @throws PosternError `ProgramFailed` with the compiler's last lines */
export async function goBuild(
  module: { folder: string; flags: readonly string[] },
  from: string,
  to: string,
  signal?: AbortSignal,
): Promise<void> {
  await run('go', ['build', ...module.flags, '-o', to, from], {
    cwd: module.folder,
    called: `go build ${from}`,
    ...(signal === undefined ? {} : { signal }),
  })
}

function onPath(program: string, env: NodeJS.ProcessEnv): boolean {
  return (env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
