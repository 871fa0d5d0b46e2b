import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { requireProgram } from '../../src/cli/programs.ts'
import { run } from './run.ts'

export interface ImageSpec {
  /** Id of the image that it builds on; none: from scratch. */
  from?: string
  /** Its contents become one layer. */
  folder: string
  /** Seconds since the epoch: of the image and of every file in the layer. */
  timestamp: number
  user?: string
  entrypoint?: readonly string[]
  env?: Record<string, string>
  labels?: Record<string, string>
}

/** buildah with a storage of its own in a folder: no daemon, and nothing of it stays once the folder is gone. */
export class Buildah {
  readonly #program: string
  readonly #common: string[]
  readonly #policy: string

  private constructor(program: string, folder: string) {
    this.#program = program
    const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run')]
    this.#common = [...storage, '--storage-driver', 'vfs']
    this.#policy = join(folder, 'policy.json')
  }

  /** @throws PosternError `ProgramMissing` */
  static async open(folder: string): Promise<Buildah> {
    const buildah = new Buildah(requireProgram('buildah', 'buildah'), folder)
    await mkdir(folder, { recursive: true })
    // Nothing is pulled, so there is nothing to distrust; without a policy buildah would not copy its own image.
    await writeFile(buildah.#policy, JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }))
    return buildah
  }

  /** Builds an image; resolves with its id. */
  async build(spec: ImageSpec): Promise<string> {
    await chmod(spec.folder, 0o755)
    const from = ['from', '--quiet', '--pull-never', '--signature-policy', this.#policy]
    const container = await this.#run(...from, spec.from ?? 'scratch')
    await this.#run('add', '--quiet', '--chown', '0:0', container, `${spec.folder}/`, '/')
    const config = ['--workingdir', '/']
    if (spec.user !== undefined) config.push('--user', spec.user)
    if (spec.entrypoint !== undefined)
      config.push('--entrypoint', JSON.stringify(spec.entrypoint), '--cmd', '')
    for (const [name, value] of Object.entries(spec.env ?? {})) config.push('--env', `${name}=${value}`)
    for (const [name, value] of Object.entries(spec.labels ?? {})) config.push('--label', `${name}=${value}`)
    await this.#run('config', ...config, container)
    const commit = ['commit', '--quiet', '--rm', '--format', 'oci', '--identity-label=false']
    commit.push('--timestamp', String(spec.timestamp), '--signature-policy', this.#policy)
    return this.#run(...commit, container)
  }

  /** Writes an image as an OCI layout into a folder, its layers compressed. */
  async export(image: string, folder: string): Promise<void> {
    const push = ['push', '--quiet', '--signature-policy', this.#policy, '--format', 'oci']
    await this.#run(...push, image, `oci:${folder}`)
  }

  async #run(...args: string[]): Promise<string> {
    return (await run(this.#program, [...this.#common, ...args])).trim()
  }
}
