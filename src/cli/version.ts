import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { searchPath } from './programs.ts'

/** Put in place by the bundler: a bundle stands alone, without a package.json. */
declare const POSTERN_VERSION: string | undefined

export const ROOT: string = join(import.meta.dirname, '..', '..')

export function version(): string {
  if (typeof POSTERN_VERSION === 'string') return POSTERN_VERSION
  const text = readFileSync(join(ROOT, 'package.json'), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

/** `postern 0.1.0 (node 26.10.0, tor 0.4.9.11)` */
export async function versionText(): Promise<string> {
  return `postern ${version()} (node ${process.versions.node}, tor ${await torVersion()})`
}

async function torVersion(): Promise<string> {
  try {
    const env = { ...process.env, PATH: searchPath() }
    const { stdout } = await promisify(execFile)('tor', ['--version'], {
      env,
      timeout: 10_000,
      maxBuffer: 65_536,
    })
    return /Tor version (\S+?)\.?\s/.exec(stdout)?.[1] ?? 'unknown'
  } catch {
    return 'not installed'
  }
}
