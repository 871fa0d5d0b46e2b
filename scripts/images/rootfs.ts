import { chmod, copyFile, mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { run } from './run.ts'

/** A folder that becomes a layer: what stands in it stands in the image, owned by root. Modes do not follow the umask. */
export class Rootfs {
  readonly folder: string

  constructor(folder: string) {
    this.folder = folder
  }

  /** Copies what a path leads to, at another one or its own. */
  async copy(from: string, to: string = from, mode = 0o644): Promise<void> {
    await copyFile(from, await this.#place(to))
    await chmod(join(this.folder, to), mode)
  }

  /** A program without its symbols: Node's take 30 MB. */
  async program(from: string, to: string = from): Promise<void> {
    const path = await this.#place(to)
    await run('strip', ['--strip-all', '-o', path, from])
    await chmod(path, 0o755)
  }

  async write(path: string, text: string, mode = 0o644): Promise<void> {
    await writeFile(await this.#place(path), text)
    await chmod(join(this.folder, path), mode)
  }

  async link(path: string, target: string): Promise<void> {
    await symlink(target, await this.#place(path))
  }

  /** A folder that any user may write to, each only to what is theirs. */
  async scratch(path: string): Promise<void> {
    await this.#place(join(path, 'x'))
    await chmod(join(this.folder, path), 0o1777)
  }

  /** The files of a folder of this machine whose names match. */
  async copyMatching(from: string, names: RegExp, to: string): Promise<void> {
    const found = (await readdir(from, { withFileTypes: true })).filter((entry) => !entry.isDirectory())
    for (const { name } of found) if (names.test(name)) await this.copy(join(from, name), join(to, name))
  }

  async #place(path: string): Promise<string> {
    const full = join(this.folder, path)
    const made = await mkdir(dirname(full), { recursive: true })
    if (made !== undefined) {
      let folder = dirname(full)
      while (folder.startsWith(made)) {
        await chmod(folder, 0o755)
        folder = dirname(folder)
      }
    }
    return full
  }
}
