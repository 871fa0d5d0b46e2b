import { setImmediate as turn } from 'node:timers/promises'
import { codeOf, messageOf, PosternError } from '../../core/errors.ts'
import { describeRef, keyFor, type Ref, type Resource } from '../../core/resource.ts'
import { type Applied, SOURCE_ANNOTATION } from '../cluster.ts'
import { ClusterError } from '../errors.ts'
import { FolderWatch } from './folder-watch.ts'
import {
  type FolderProblem,
  folderProblem,
  type Manifest,
  type ManifestDocument,
  type ManifestKind,
  readManifest,
} from './manifests.ts'
import { type FoundFile, MAX_FILE_BYTES, MAX_FILES, readLimited, type Scan, scanFolder } from './scan.ts'
import type { Store } from './store.ts'

export const FOLDER_MANAGER = 'postern-folder'

export interface FolderChange {
  ref: Ref
  /** The file, relative to the folder. */
  source: string
  result: Exclude<Applied, 'unchanged'> | 'removed'
}

export interface FolderOptions {
  folder: string
  store: Store
  /** All kinds that a manifest may have. */
  kinds: readonly ManifestKind[]
  /** Once for every problem that is new; not again until it was gone. */
  onProblem(problem: FolderProblem): void
  onChange?(change: FolderChange): void
  /** After a change, to let an editor finish (default 30 ms). */
  debounceMs?: number
  /** How long a file must be left alone, or gone, before what vanished is removed (default 300 ms). */
  settleMs?: number
  /** How often everything is looked through, should the watch miss something (default 5000 ms). */
  rescanMs?: number
}

interface FileState {
  signature: string
  manifest: Manifest
  /** When this content was first seen; the first scan's files count as settled. */
  since: number
}

/** Documents a transaction: one wait for the disk for all of them, and the process stays awake in between. */
const BATCH = 50

/**
 * Keeps the store as a folder of manifests says: a document is an apply, a vanished document a removal of what the
 * folder itself had applied. What cannot be read or is not valid changes nothing.
 */
export class ManifestFolder {
  readonly #options: FolderOptions
  readonly #files = new Map<string, FileState>()
  /** What the folder has in the store: object → file. */
  readonly #applied = new Map<string, { ref: Ref; source: string }>()
  readonly #watch: FolderWatch
  /** Since when files are missing that had declared something. */
  readonly #missingSince = new Map<string, number>()
  readonly #stopWatching: () => void
  #problems: FolderProblem[] = []
  #timer: NodeJS.Timeout | undefined
  #due = Number.POSITIVE_INFINITY
  #scanning: Promise<void> | undefined
  #again = false
  #first = true
  #closed = false

  constructor(options: FolderOptions) {
    this.#options = options
    this.#watch = new FolderWatch(() => this.#schedule(options.debounceMs ?? 30))
    for (const { kind } of options.kinds) {
      for (const object of options.store.list(kind)) this.#recall(object)
    }
    this.#stopWatching = options.store.watch({
      changed: ({ type, ref }) => {
        if (type === 'removed') this.#missing(idOf(ref))
      },
      resync: () => {
        for (const [id, { ref }] of this.#applied) if (options.store.get(ref) === undefined) this.#missing(id)
      },
    })
  }

  /** Settles when the folder was read once and the store is as it says. */
  async start(): Promise<void> {
    await this.#scan()
  }

  /** What is wrong now, by file and line. */
  problems(): FolderProblem[] {
    return [...this.#problems]
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#stopWatching()
    this.#watch.close()
  }

  /** What an earlier run applied. A copied annotation alone proves nothing, so the field manager is asked too. */
  #recall(object: Resource): void {
    const source = object.metadata.annotations?.[SOURCE_ANNOTATION]
    if (source === undefined) return
    const { apiVersion, kind, metadata } = object
    const ref = { apiVersion, kind, name: metadata.name, ...pick(metadata.namespace) }
    if (this.#options.store.managers(ref).includes(FOLDER_MANAGER))
      this.#applied.set(idOf(ref), { ref, source })
  }

  /** Somebody else removed an object of ours: its file is read again, and applies it again. */
  #missing(id: string): void {
    const source = this.#applied.get(id)?.source
    if (source === undefined) return
    this.#applied.delete(id)
    this.#files.delete(source)
    this.#schedule(this.#options.debounceMs ?? 30)
  }

  #schedule(delay: number): void {
    const due = performance.now() + delay
    if (this.#closed || due >= this.#due) return
    clearTimeout(this.#timer)
    this.#due = due
    this.#timer = setTimeout(() => {
      this.#due = Number.POSITIVE_INFINITY
      void this.#scan()
    }, delay)
    this.#timer.unref()
  }

  async #scan(): Promise<void> {
    if (this.#scanning !== undefined) {
      this.#again = true
      return this.#scanning
    }
    this.#due = Number.POSITIVE_INFINITY
    clearTimeout(this.#timer)
    this.#scanning = this.#scanOnce()
      .catch((error: unknown) =>
        this.#report([folderProblem('', `${this.#options.folder}: ${messageOf(error)}`)]),
      )
      .finally(() => {
        this.#scanning = undefined
        this.#schedule(this.#again ? 0 : (this.#options.rescanMs ?? 5000))
        this.#again = false
      })
    return this.#scanning
  }

  async #scanOnce(): Promise<void> {
    const { folder } = this.#options
    const scan = await scanFolder(folder)
    if (this.#closed) return
    if (scan === undefined) {
      this.#watch.set([])
      // The same folder may come back with the same files: all of them are read again then.
      this.#files.clear()
      this.#report([folderProblem('', `folder ${folder} is gone: nothing is changed until it is back`)])
      this.#schedule(Math.min(1000, this.#options.rescanMs ?? 5000))
      return
    }
    // What happened in a folder between its reading and its watch was seen by nobody: look once more.
    if (this.#watch.set(scan.folders)) this.#schedule(this.#options.debounceMs ?? 30)
    const problems: FolderProblem[] = []
    for (const { name, reason } of scan.unreadable) problems.push(this.#unreadable(name, reason))
    if (scan.overflow) {
      const message = `folder ${folder} has more than ${MAX_FILES} manifests, or is too deep: only the first ones are read`
      problems.push(folderProblem('', message))
    }
    for (const file of scan.files) await this.#read(file)
    if (this.#closed) return
    const names = new Set(scan.files.map((file) => file.name))
    for (const name of names) this.#missingSince.delete(name)
    const claimed = this.#claim(scan, problems)
    await this.#apply(claimed, problems)
    if (this.#closed) return
    this.#removeVanished(scan, names, claimed, problems)
    for (const name of this.#files.keys()) if (!names.has(name)) this.#files.delete(name)
    const sources = new Set([...this.#applied.values()].map(({ source }) => source))
    for (const name of this.#missingSince.keys()) if (!sources.has(name)) this.#missingSince.delete(name)
    this.#first = false
    this.#report(problems)
  }

  async #read(file: FoundFile): Promise<void> {
    if (this.#files.get(file.name)?.signature === file.signature) return
    const manifest = await this.#parse(file)
    const since = this.#first ? Number.NEGATIVE_INFINITY : performance.now()
    this.#files.set(file.name, { signature: file.signature, manifest, since })
  }

  async #parse({ name, path, size }: FoundFile): Promise<Manifest> {
    const broken = (problem: FolderProblem): Manifest => ({
      documents: [],
      problems: [problem],
      complete: false,
    })
    const tooBig = () =>
      broken(folderProblem(name, 'is bigger than 8 MB: split it; nothing in it is changed until then'))
    // By its size alone: it is not even opened.
    if (size > MAX_FILE_BYTES) return tooBig()
    try {
      const text = await readLimited(path)
      if (text === undefined) return tooBig()
      if (text.length === 0 && [...this.#applied.values()].some(({ source }) => source === name)) {
        // `helm template … > web.yaml` empties the file first, and fills it when it is ready.
        const message = 'is empty: nothing is changed; remove the file to remove what it declared'
        return broken(folderProblem(name, message))
      }
      return readManifest(text, name, this.#options.kinds)
    } catch (error) {
      if (error instanceof TypeError) {
        return broken(
          folderProblem(name, 'is no UTF-8 text: save it as UTF-8; nothing in it is changed until then'),
        )
      }
      return broken(this.#unreadable(name, codeOf(error) ?? messageOf(error)))
    }
  }

  #unreadable(name: string, reason: string): FolderProblem {
    if (name === '') {
      const { folder } = this.#options
      return folderProblem('', `folder ${folder} cannot be read (${reason}): nothing is changed until it can`)
    }
    return folderProblem(name, `cannot be read (${reason}): nothing in it is changed until it can`)
  }

  /** Which document speaks for which object: the first one of it. */
  #claim(scan: Scan, problems: FolderProblem[]): Map<string, { document: ManifestDocument; file: string }> {
    const claimed = new Map<string, { document: ManifestDocument; file: string }>()
    for (const { name } of scan.files) {
      const manifest = this.#files.get(name)?.manifest
      if (manifest === undefined) continue
      problems.push(...manifest.problems)
      for (const document of manifest.documents) {
        const id = idOf(document.ref)
        const first = claimed.get(id)
        if (first === undefined) {
          claimed.set(id, { document, file: name })
        } else {
          const where = `${first.file}:${first.document.position.line}`
          const message = `is declared already in ${where}: remove one of the two; this one changes nothing`
          problems.push(folderProblem(name, message, document.position, describeRef(document.ref)))
        }
      }
    }
    return claimed
  }

  async #apply(
    claimed: Map<string, { document: ManifestDocument; file: string }>,
    problems: FolderProblem[],
  ): Promise<void> {
    const waiting = [...claimed.values()].filter(({ document, file }) => {
      if (document.object !== undefined) return true
      // Applied before, then another file's for a while: its content is no longer kept, so it is read again.
      if (document.applied && this.#applied.get(idOf(document.ref))?.source !== file) {
        this.#files.delete(file)
        this.#again = true
      }
      return false
    })
    for (let from = 0; from < waiting.length; from += BATCH) {
      const part = waiting.slice(from, from + BATCH)
      try {
        const changes = this.#options.store.batch(() =>
          part.map((item) => this.#applyOne(item.document, item.file)),
        )
        for (const [index, outcome] of changes.entries()) this.#settle(part[index]!, outcome, problems)
      } catch (error) {
        if (!(error instanceof PosternError)) throw error
        problems.push(folderProblem('', error.message))
        return
      }
      await turn()
      if (this.#closed) return
    }
  }

  #applyOne(document: ManifestDocument, file: string): Applied | ClusterError {
    const { metadata, ...rest } = document.object!
    const annotations = { ...metadata.annotations, [SOURCE_ANNOTATION]: file }
    // What `kubectl get -o yaml` writes besides is of another object's life.
    const { uid: _u, resourceVersion: _r, ...kept } = metadata
    try {
      return this.#options.store.apply(
        { ...rest, metadata: { ...kept, annotations } } as Resource,
        FOLDER_MANAGER,
      ).result
    } catch (error) {
      if (error instanceof ClusterError && error.code !== 'Unavailable') return error
      throw error
    }
  }

  #settle(
    { document, file }: { document: ManifestDocument; file: string },
    outcome: Applied | ClusterError,
    problems: FolderProblem[],
  ): void {
    const { ref } = document
    if (outcome instanceof ClusterError) {
      problems.push(folderProblem(file, outcome.message, document.position))
      return
    }
    this.#applied.set(idOf(ref), { ref, source: file })
    // The store has it: a second copy of all manifests would only cost memory.
    document.object = undefined
    document.applied = true
    if (outcome !== 'unchanged') this.#options.onChange?.({ ref, source: file, result: outcome })
  }

  #removeVanished(
    scan: Scan,
    names: Set<string>,
    claimed: Map<string, unknown>,
    problems: FolderProblem[],
  ): void {
    for (const [id, { ref, source }] of [...this.#applied]) {
      if (claimed.has(id) || this.#isHeld(scan, names, source)) continue
      this.#applied.delete(id)
      try {
        if (!this.#options.store.remove(ref)) continue
        this.#options.onChange?.({ ref, source, result: 'removed' })
      } catch (error) {
        if (!(error instanceof PosternError)) throw error
        this.#applied.set(id, { ref, source })
        problems.push(folderProblem('', error.message))
        return
      }
    }
  }

  /** Whether what a file declared before must stay for now, because nobody can tell what it declares. */
  #isHeld(scan: Scan, names: Set<string>, source: string): boolean {
    if (
      scan.unreadable.some(
        ({ name }) => source === name || name === '' || (name.endsWith('/') && source.startsWith(name)),
      )
    ) {
      return true
    }
    let since = this.#files.get(source)?.since
    if (names.has(source)) {
      if (since === undefined || !this.#files.get(source)!.manifest.complete) return true
    } else {
      if (scan.overflow) return true
      since = this.#missingSince.get(source) ?? (this.#first ? Number.NEGATIVE_INFINITY : performance.now())
      this.#missingSince.set(source, since)
    }
    const wait = since + (this.#options.settleMs ?? 300) - performance.now()
    if (wait <= 0) return false
    // Half of a file that is being written may be a valid file, and an editor or Git may only be replacing it.
    this.#schedule(wait + 1)
    return true
  }

  #report(problems: FolderProblem[]): void {
    const known = new Set(this.#problems.map((problem) => problem.text))
    this.#problems = problems
    for (const problem of problems) {
      if (known.has(problem.text)) continue
      known.add(problem.text)
      this.#options.onProblem(problem)
    }
  }
}

function idOf(ref: Ref): string {
  return `${ref.apiVersion} ${ref.kind} ${keyFor(ref.namespace, ref.name)}`
}

function pick(namespace: string | undefined): { namespace?: string } {
  return namespace === undefined ? {} : { namespace }
}
