import type { BigIntStats } from 'node:fs'
import { open, readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../core/errors.ts'
import type { WatchedFolder } from './folder-watch.ts'

export interface FoundFile {
  /** Relative to the folder, with `/`. */
  name: string
  path: string
  size: number
  /** Differs when the content may differ. */
  signature: string
}

export interface Scan {
  /** By name. */
  files: FoundFile[]
  /** All folders that were read, for the watchers. */
  folders: WatchedFolder[]
  /** What could not be read and why; `name` ends in `/` for a folder. */
  unreadable: { name: string; reason: string }[]
  /** More files than are read; those beyond are not in `files`. */
  overflow: boolean
}

export const MAX_FILES = 1000
export const MAX_FILE_BYTES: number = 8 * 1024 * 1024
/** Somebody's home folder by mistake must not be walked to its end. */
const MAX_ENTRIES = 50_000
const MAX_DEPTH = 32

/**
 * Finds the manifests of a folder, in all its subfolders.
 *
 * @returns undefined when the folder itself is not there
 */
export async function scanFolder(folder: string): Promise<Scan | undefined> {
  const scan: Scan = { files: [], folders: [], unreadable: [], overflow: false }
  const visited = new Set<string>()
  let entries = 0
  const walk = async (path: string, prefix: string, depth: number): Promise<boolean> => {
    let names: string[]
    try {
      const real = await realpath(path)
      // A link to a folder above, or to one that was read already.
      if (visited.has(real)) return true
      visited.add(real)
      const { dev, ino } = await stat(path, { bigint: true })
      names = (await readdir(path)).sort()
      scan.folders.push({ path, inode: `${dev}:${ino}` })
    } catch (error) {
      const code = codeOf(error)
      if (code === 'ENOENT' || code === 'ENOTDIR') return false
      scan.unreadable.push({ name: prefix, reason: code ?? 'unknown' })
      return true
    }
    for (const name of names) {
      if (name.startsWith('.')) continue
      if (++entries > MAX_ENTRIES || depth > MAX_DEPTH) {
        scan.overflow = true
        return true
      }
      const full = join(path, name)
      let stats: BigIntStats
      try {
        stats = await stat(full, { bigint: true })
      } catch (error) {
        if (codeOf(error) !== 'ENOENT' && isManifest(name)) {
          scan.unreadable.push({ name: prefix + name, reason: codeOf(error) ?? 'unknown' })
        }
        continue
      }
      if (stats.isDirectory()) await walk(full, `${prefix}${name}/`, depth + 1)
      else if (stats.isFile() && isManifest(name)) {
        if (scan.files.length >= MAX_FILES) {
          scan.overflow = true
          return true
        }
        const signature = [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(':')
        scan.files.push({ name: prefix + name, path: full, size: Number(stats.size), signature })
      }
    }
    return true
  }
  if (!(await walk(folder, '', 0))) return undefined
  scan.files.sort((a, b) => (a.name < b.name ? -1 : 1))
  return scan
}

/**
 * A file's text, never more than the limit, even when it grows meanwhile.
 *
 * @returns undefined when it is too big
 * @throws TypeError when it is no UTF-8, or the system's error
 */
export async function readLimited(path: string): Promise<string | undefined> {
  const file = await open(path, 'r')
  try {
    const chunks: Buffer[] = []
    let size = 0
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(64 * 1024))
      if (bytesRead === 0) break
      size += bytesRead
      if (size > MAX_FILE_BYTES) return undefined
      chunks.push(buffer.subarray(0, bytesRead))
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } finally {
    await file.close()
  }
}

function isManifest(name: string): boolean {
  return /\.(ya?ml|json)$/.test(name)
}
