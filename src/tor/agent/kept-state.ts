import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf, messageOf, PosternError } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'

export interface KeptStateOptions {
  /** A folder that outlives the pod. */
  folder: string
  /** tor's own state file, in its DataDirectory. */
  state: string
  log: Logger
  /** What is wrong with keeping it; undefined once nothing is any more. */
  onProblem(text: string | undefined): void
  /** Between two looks at tor's file; default two minutes. */
  everyMs?: number
}

const EVERY_MS = 120_000
/** tor's has some ten kilobytes. */
const LIMIT = 1024 * 1024
const NAME = 'state'
const TEMPORARY = /^state\.[0-9a-f]{8}\.new$/
/** A copy that is being written is done long before. */
const STALE_MS = 600_000
/** As tor writes it: comments, and an option a line. */
const LINE = /^(#[^\0]*|[A-Za-z_]\w*( [\x20-\x7e]*)?)?$/

/**
 * A copy of tor's state file, which names its guards: a tor that had new ones with every pod would sooner or later have
 * a bad one. It is a copy, since no two tors may share a DataDirectory, and a pod starts before its predecessor ends.
 */
export class KeptState {
  readonly #options: KeptStateOptions
  #saved: Buffer | undefined
  #running: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: KeptStateOptions) {
    this.#options = options
  }

  /** Gives a tor that has no state yet the kept one, and keeps copying from then on. Never fails: tor starts without. */
  async start(): Promise<void> {
    const { folder, state, log, onProblem } = this.#options
    try {
      await this.#sweep()
      const kept = await read(join(folder, NAME))
      if (kept !== undefined && (await read(state)) === undefined) {
        checkState(kept)
        await mkdir(dirname(state), { recursive: true, mode: 0o700 })
        await write(state, kept)
        this.#saved = kept
        log.info({ bytes: kept.length }, "tor's guards are those from before")
      }
    } catch (error) {
      const text = `tor starts with new guards: the kept state cannot be used: ${messageOf(error)}`
      log.warn({}, text)
      onProblem(text)
    }
    this.#timer = setInterval(() => void this.save(), this.#options.everyMs ?? EVERY_MS)
    this.#timer.unref()
  }

  /** Copies what tor has written since the last copy. */
  save(): Promise<void> {
    this.#running = this.#running.then(() => (this.#closed ? undefined : this.#save()))
    return this.#running
  }

  /** Copies once more, and then no more: the folder may be a successor's. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.save()
    this.#closed = true
  }

  async #save(): Promise<void> {
    const { folder, state, log, onProblem } = this.#options
    try {
      const now = await read(state)
      if (now === undefined || this.#saved?.equals(now)) return
      checkState(now)
      await write(join(folder, NAME), now)
      this.#saved = now
      onProblem(undefined)
    } catch (error) {
      const text = `tor's guards are not kept: ${messageOf(error)}; see to the volume of spec.persistence`
      log.warn({}, text)
      onProblem(text)
    }
  }

  /** Removes what a process left that ended while it wrote. */
  async #sweep(): Promise<void> {
    const { folder } = this.#options
    for (const name of await readdir(folder)) {
      const path = join(folder, name)
      if (TEMPORARY.test(name) && Date.now() - (await stat(path)).mtimeMs > STALE_MS) {
        await rm(path, { force: true })
      }
    }
  }
}

/** Undefined where nothing is to be kept. */
export function keptState(
  folder: string | undefined,
  options: Omit<KeptStateOptions, 'folder'>,
): KeptState | undefined {
  return folder === undefined ? undefined : new KeptState({ folder, ...options })
}

/** @throws PosternError StateUnusable */
export function checkState(content: Buffer): void {
  const lines = content.toString('latin1').split('\n')
  const bad = lines.findIndex((line) => !LINE.test(line))
  if (bad >= 0) {
    throw new PosternError('StateUnusable', `line ${bad + 1} of it is none that tor writes`)
  }
}

/** @throws PosternError StateUnusable; errors of the file system, but for a file that is not there */
async function read(path: string): Promise<Buffer | undefined> {
  let file: Awaited<ReturnType<typeof open>>
  try {
    // Whatever else stands there, a link or a pipe, is nothing to be waited for or followed.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
  try {
    const { size } = await regular(file)
    const content = Buffer.alloc(size)
    const { bytesRead } = await file.read(content, 0, size, 0)
    return content.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

async function regular(file: Awaited<ReturnType<typeof open>>): Promise<{ size: number }> {
  const found = await file.stat()
  if (!found.isFile()) throw new PosternError('StateUnusable', 'it is not a file')
  if (found.size > LIMIT) throw new PosternError('StateUnusable', `it has more than ${LIMIT} bytes`)
  return found
}

/** In one step: whoever reads it has the old or the new one, whole. */
async function write(path: string, content: Buffer): Promise<void> {
  const temporary = `${path}.${randomBytes(4).toString('hex')}.new`
  try {
    const file = await open(temporary, 'wx', 0o600)
    try {
      await file.writeFile(content)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw error
  }
}
