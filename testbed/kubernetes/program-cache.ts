import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { messageOf, PosternError } from '../../src/core/errors.ts'
import { goBuild, goVersion, mustBuild } from './go.ts'
import { locked } from './lock.ts'
import { run } from './run.ts'

/** A Go module and the programs that are built from it. */
export interface ProgramSource<Name extends string> {
  /** The module's folder. */
  folder: string
  /** Files of it that decide what is built. */
  files: readonly string[]
  /** Of `go build`. */
  flags: readonly string[]
  programs: Readonly<
    Record<
      Name,
      {
        package: string
        /** Arguments with which it runs and ends with code 0. */
        check: readonly string[]
        /** How long a first build takes, for whoever waits. */
        minutes: number
      }
    >
  >
}

export interface CacheOptions {
  /** Folder of all caches. */
  root: string
  /** Of this cache's folders in it; those with another hash go when they were not used for a day. */
  prefix: string
  say: (line: string) => void
}

/** What was built: by it a file that was cut short, changed or made unusable later is known. */
interface Entry {
  size: number
  sha256: string
}

const day = 24 * 60 * 60 * 1000

/** Programs built once for one state of their source; whatever is missing or broken is built again. */
export class ProgramCache<Name extends string> {
  readonly #source: ProgramSource<Name>
  readonly #options: CacheOptions

  constructor(source: ProgramSource<Name>, options: CacheOptions) {
    this.#source = source
    this.#options = options
  }

  /**
   * @throws PosternError `TestbedOff`, `GoMissing`, `TestbedBuild`
   */
  async build(names: readonly Name[], signal?: AbortSignal): Promise<Record<Name, string>> {
    mustBuild()
    const { root, prefix, say } = this.#options
    const folder = join(root, prefix + (await this.#hash()))
    await mkdir(folder, { recursive: true })
    await utimes(folder, new Date(), new Date())
    if ((await this.#broken(folder, names)).length > 0) {
      // Outside of what is removed as old, so that nobody waits for a lock that is gone.
      await locked(
        join(root, `${prefix}lock`),
        async () => {
          for (const name of await this.#broken(folder, names)) await this.#buildOne(folder, name, signal)
          await this.#removeOld(folder)
        },
        (who) => say(`waiting: ${who.replace(/:.*/, '')}`),
      )
    }
    const all = Object.keys(this.#source.programs) as Name[]
    return Object.fromEntries(all.map((name) => [name, join(folder, name)])) as Record<Name, string>
  }

  async #hash(): Promise<string> {
    const { folder, files, flags } = this.#source
    const hash = createHash('sha256')
    for (const file of files) hash.update(await readFile(join(folder, file))).update('\0')
    hash.update(JSON.stringify([flags, await goVersion(folder), process.arch]))
    return hash.digest('hex').slice(0, 16)
  }

  async #broken(folder: string, names: readonly Name[]): Promise<Name[]> {
    const manifest = await readManifest(folder)
    const found: Name[] = []
    for (const name of names) {
      if (!(await isWhole(join(folder, name), manifest[name]))) found.push(name)
    }
    return found
  }

  async #buildOne(folder: string, name: Name, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    const source = this.#source
    const { say } = this.#options
    const program = source.programs[name]
    const begun = Date.now()
    const about = program.minutes === 1 ? 'a minute' : `${program.minutes} minutes`
    say(`building ${name} (the first time takes about ${about})`)
    const built = join(folder, `.${name}.new`)
    // Go overwrites no file that is not a program.
    await rm(built, { force: true })
    try {
      await goBuild(source, program.package, built, signal)
      await chmod(built, 0o755)
      await run(built, program.check)
      const entry = { size: (await stat(built)).size, sha256: await sha256(built) }
      // The old entry goes with the old file: between the two renames the file counts as broken, never as another one.
      await rename(built, join(folder, name))
      await writeManifest(folder, { ...(await readManifest(folder)), [name]: entry })
    } catch (cause) {
      await rm(built, { force: true })
      signal?.throwIfAborted()
      throw new PosternError(
        'TestbedBuild',
        `${name} of the test bed was not built: ${messageOf(cause)}\nSet POSTERN_TESTBED=off to leave the test bed out`,
        { cause },
      )
    }
    say(`built ${name} in ${Math.round((Date.now() - begun) / 1000)} s`)
  }

  /** Of other sources: not those that another checkout still uses. */
  async #removeOld(current: string): Promise<void> {
    const { root, prefix } = this.#options
    for (const name of await readdir(root)) {
      const folder = join(root, name)
      if (!new RegExp(`^${prefix}[0-9a-f]{16}$`).test(name) || folder === current) continue
      const used = await stat(folder).then((found) => found.mtimeMs)
      if (used < Date.now() - day) await rm(folder, { recursive: true, force: true })
    }
  }
}

async function isWhole(path: string, entry: Entry | undefined): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  if (found === undefined || !found.isFile() || (found.mode & 0o111) === 0) return false
  return found.size === entry?.size && (await sha256(path)) === entry.sha256
}

async function sha256(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash)
  return hash.digest('hex')
}

async function readManifest(folder: string): Promise<Record<string, Entry>> {
  try {
    const read: unknown = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'))
    return typeof read === 'object' && read !== null ? (read as Record<string, Entry>) : {}
  } catch {
    // None yet, or broken: everything is built again.
    return {}
  }
}

async function writeManifest(folder: string, manifest: Record<string, Entry>): Promise<void> {
  const file = join(folder, 'manifest.json')
  await writeFile(`${file}.new`, `${JSON.stringify(manifest, undefined, 2)}\n`)
  await rename(`${file}.new`, file)
}
