import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

export interface VolumeFile {
  data: Buffer
  mode: number
}

/** By path inside the volume. */
export type VolumeFiles = Map<string, VolumeFile>

const DATA = '..data'

/**
 * Replaces all files of a volume at once, the way the kubelet's AtomicWriter does: a new folder beside the old,
 * `..data` swung over by a rename, files seen through links. A reader sees all old or all new, never a mix.
 */
export function writeVolume(folder: string, files: VolumeFiles, directoryMode: number): void {
  mkdirSync(folder, { recursive: true, mode: directoryMode })
  chmodSync(folder, directoryMode)
  const old = linkTarget(join(folder, DATA))
  const fresh = `..${new Date().toISOString().replace(/[-:.TZ]/g, '_')}${randomBytes(4).toString('hex')}`
  mkdirSync(join(folder, fresh), { mode: directoryMode })
  for (const [path, file] of files) {
    const target = join(folder, fresh, path)
    mkdirSync(dirname(target), { recursive: true, mode: directoryMode })
    writeFileSync(target, file.data, { mode: file.mode })
    chmodSync(target, file.mode)
  }
  const draft = join(folder, `${DATA}_tmp`)
  rmSync(draft, { force: true })
  symlinkSync(fresh, draft)
  renameSync(draft, join(folder, DATA))
  linkVisible(folder, new Set([...files.keys()].map((path) => path.split('/')[0]!)))
  for (const name of readdirSync(folder)) {
    const stale = name.startsWith('..') && name !== DATA && name !== fresh
    if (stale || name === old) rmSync(join(folder, name), { recursive: true, force: true })
  }
}

function linkVisible(folder: string, names: ReadonlySet<string>): void {
  for (const name of names) {
    const target = `${DATA}/${name}`
    if (linkTarget(join(folder, name)) === target) continue
    rmSync(join(folder, name), { recursive: true, force: true })
    symlinkSync(target, join(folder, name))
  }
  for (const name of readdirSync(folder)) {
    if (name.startsWith('..') || names.has(name)) continue
    if (lstatSync(join(folder, name)).isSymbolicLink()) rmSync(join(folder, name), { force: true })
  }
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** Tells one content from another, so that an unrelated change of an object rewrites nothing. */
export function filesDigest(files: VolumeFiles): string {
  const hash = createHash('sha256')
  for (const [path, file] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`${path}\0${file.mode}\0${file.data.length}\0`).update(file.data)
  }
  return hash.digest('hex')
}
