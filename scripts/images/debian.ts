import { existsSync, realpathSync } from 'node:fs'
import { run } from './run.ts'

export interface DebianPackage {
  name: string
  version: string
  architecture: string
}

/**
 * Shared libraries that a program needs, the loader included: absolute paths, as the loader will look for them.
 * None for one that is linked statically.
 */
export async function librariesOf(program: string): Promise<string[]> {
  const lines = (await run('ldd', [program])).split('\n')
  const missing = lines.find((line) => line.includes('not found'))
  if (missing !== undefined) throw new Error(`${program} lacks a library: ${missing.trim()}`)
  return lines.flatMap((line) => /(?:=>\s+|^\s+)(\/\S+)\s+\(0x/.exec(line)?.[1] ?? [])
}

/** The installed packages that brought these files, each once, by name. What no package brought is left out. */
export async function packagesOf(files: readonly string[]): Promise<DebianPackage[]> {
  const names = new Set<string>()
  for (const file of files) {
    const owner = await ownerOf(file)
    if (owner !== undefined) names.add(owner)
  }
  if (names.size === 0) return []
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query fills it in.
  const format = '${Package}\t${Version}\t${Architecture}\n'
  const text = await run('dpkg-query', ['--show', `--showformat=${format}`, ...names])
  const packages = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [name = '', version = '', architecture = ''] = line.split('\t')
      return { name, version, architecture }
    })
  return packages.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** dpkg knows a file by the path in its package, which may be on either side of the link from /lib to /usr/lib. */
async function ownerOf(file: string): Promise<string | undefined> {
  const real = realpathSync(file)
  for (const path of new Set([file, real, real.replace(/^\/usr/, ''), `/usr${file}`])) {
    if (!existsSync(path)) continue
    const line = await run('dpkg-query', ['--search', path]).catch(() => '')
    const owner = /^([^:\s]+(?::\w+)?): \//m.exec(line)?.[1]
    if (owner !== undefined) return owner
  }
  return undefined
}
