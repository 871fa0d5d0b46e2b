import { createHash } from 'node:crypto'
import { type FSWatcher, watch } from 'node:fs'
import { open, readdir, readlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { codeOf, PosternError } from '../core/errors.ts'

export interface FolderContent {
  /** By file name; hidden files and folders are left out. */
  files: ReadonlyMap<string, Buffer>
  /** SHA-256 (hex) over names and contents. */
  digest: string
}

export interface WatcherOptions {
  folder: string
  /**
   * Called with the first content, at every change of it, and once more, even unchanged, when the folder can be read
   * again after `onError`; one call after the other.
   */
  onContent(content: FolderContent): void | Promise<void>
  /** The folder cannot be read now; called once until it can. What was read before stays in force. */
  onError?(error: unknown): void
  /** The slow look that finds what no notice told of; default 1000 ms. */
  rescanMs?: number
}

const FILE_LIMIT = 4 * 1024 * 1024
const TOTAL_LIMIT = 16 * 1024 * 1024
const COUNT_LIMIT = 10_000

/**
 * Watches a mounted folder, also one that the kubelet writes: there the files are links through `..data`, which
 * is swapped as a whole, so one content is never a mix of two. Contents are compared by digest, never by time.
 */
export class FolderWatcher {
  readonly #options: WatcherOptions
  #watcher: FSWatcher | undefined
  #timer: NodeJS.Timeout | undefined
  #digest: string | undefined
  #failing = false
  #scanning: Promise<void> | undefined
  #again = false
  #closed = false

  constructor(options: WatcherOptions) {
    this.#options = options
  }

  /** Resolves after the first look, whether it found something or not. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.scan(), this.#options.rescanMs ?? 1000)
    this.#timer.unref()
    await this.scan()
  }

  /** Looks now; a look that is asked for while one runs follows it. */
  scan(): Promise<void> {
    this.#again = true
    this.#scanning ??= this.#scanAll().finally(() => {
      this.#scanning = undefined
    })
    return this.#scanning
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#timer)
    this.#watcher?.close()
    this.#watcher = undefined
  }

  async #scanAll(): Promise<void> {
    while (this.#again && !this.#closed) {
      this.#again = false
      await this.#scanOnce()
    }
  }

  async #scanOnce(): Promise<void> {
    this.#listen()
    try {
      const content = await readFolder(this.#options.folder)
      const recovered = this.#failing
      this.#failing = false
      if ((content.digest === this.#digest && !recovered) || this.#closed) return
      this.#digest = content.digest
      await this.#options.onContent(content)
    } catch (error) {
      if (!this.#failing && !this.#closed) this.#options.onError?.(error)
      this.#failing = true
    }
  }

  #listen(): void {
    if (this.#watcher !== undefined || this.#closed) return
    try {
      const watcher = watch(this.#options.folder, { persistent: false }, (_event, name) => {
        // The folder itself was moved away or removed: the next look listens to what stands there then.
        if (name === null || name === basename(this.#options.folder)) this.#unlisten(watcher)
        void this.scan()
      })
      watcher.on('error', () => this.#unlisten(watcher))
      this.#watcher = watcher
    } catch {
      // No such folder yet, or no watches left on this machine: the slow look serves until then.
    }
  }

  #unlisten(watcher: FSWatcher): void {
    watcher.close()
    if (this.#watcher === watcher) this.#watcher = undefined
  }
}

/**
 * Reads all plain files of a folder as one consistent content.
 *
 * @throws PosternError FolderTooLarge, FolderUnsteady; errors of the file system
 */
export async function readFolder(folder: string): Promise<FolderContent> {
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const before = await dataLink(folder)
    const source = before === undefined ? folder : join(folder, before)
    try {
      const content = await readFiles(source)
      if ((await dataLink(folder)) === before) return content
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' || (await dataLink(folder)) === before) throw error
    }
  }
  throw new PosternError('FolderUnsteady', `${folder} changed while it was read, five times in a row`)
}

async function dataLink(folder: string): Promise<string | undefined> {
  try {
    return await readlink(join(folder, '..data'))
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'EINVAL') return undefined
    throw error
  }
}

async function readFiles(folder: string): Promise<FolderContent> {
  const names = (await readdir(folder)).filter((name) => !name.startsWith('.')).sort()
  if (names.length > COUNT_LIMIT) throw tooLarge(folder, `more than ${COUNT_LIMIT} files`)
  const files = new Map<string, Buffer>()
  const hash = createHash('sha256')
  let total = 0
  for (const name of names) {
    const data = await readLimited(join(folder, name))
    if (data === undefined) continue
    total += data.length
    if (total > TOTAL_LIMIT) throw tooLarge(folder, `more than ${TOTAL_LIMIT} bytes`)
    files.set(name, data)
    hash.update(`${name.length}:${name}:${data.length}:`).update(data)
  }
  return { files, digest: hash.digest('hex') }
}

async function readLimited(path: string): Promise<Buffer | undefined> {
  let file: Awaited<ReturnType<typeof open>>
  try {
    file = await open(path, 'r')
  } catch (error) {
    // Removed between the listing and now, as in a plain folder that someone edits.
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
  try {
    const facts = await file.stat()
    if (!facts.isFile()) return undefined
    if (facts.size > FILE_LIMIT) throw tooLarge(path, `more than ${FILE_LIMIT} bytes`)
    return await file.readFile()
  } finally {
    await file.close()
  }
}

function tooLarge(path: string, what: string): PosternError {
  return new PosternError('FolderTooLarge', `${path} holds ${what}: nothing of it is used`)
}
