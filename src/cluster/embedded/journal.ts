import { type FSWatcher, watch } from 'node:fs'
import type { Kind, Ref, Resource } from '../../core/resource.ts'
import { ClusterError } from '../errors.ts'
import type { Database } from './database.ts'
import { deepFreeze } from './shape.ts'

export interface Change {
  revision: number
  type: 'put' | 'removed'
  ref: Ref
  uid: string
  /** Frozen; as it is after a put. Of puts of one object that follow each other only the last is told. */
  object?: Resource
}

export interface ChangeListener {
  changed(change: Change): void
  /** More happened than the journal keeps: list again. */
  resync(): void
}

interface Row {
  revision: number
  type: 'put' | 'removed'
  api: string
  kind: string
  namespace: string
  name: string
  uid: string
  json: string | null
}

interface Page {
  changes: Change[]
  /** Where to go on. */
  next: number
  more: boolean
}

const PAGE = 500

/** The order of all changes, of this process and of others that have the same file open. */
export class Journal {
  readonly #database: Database
  readonly #keep: number
  readonly #listeners = new Set<ChangeListener>()
  readonly #timer: NodeJS.Timeout
  #watcher: FSWatcher | undefined
  #seen: number
  #telling = false
  #looking = false
  #closed = false

  constructor(database: Database, keep: number, pollMs: number) {
    this.#database = database
    this.#keep = keep
    this.#seen = this.revision
    this.#watchFile()
    this.#timer = setInterval(() => this.#look(), pollMs)
    this.#timer.unref()
  }

  /** Of the newest change. */
  get revision(): number {
    return this.#meta().revision
  }

  /** Writes one change down, inside a transaction. */
  add(type: Change['type'], ref: Ref, uid: string, revision: number): void {
    this.#database
      .sql('INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)')
      .run(revision, type, ref.apiVersion, ref.kind, ref.namespace ?? '', ref.name, uid)
  }

  /** The next revision, inside a transaction; forgets the oldest changes. */
  next(): number {
    const row = this.#database
      .sql(
        'UPDATE meta SET revision = revision + 1, compacted = max(compacted, revision + 1 - ?) RETURNING revision, compacted',
      )
      .get(this.#keep) as { revision: number; compacted: number }
    this.#database.sql('DELETE FROM changes WHERE revision <= ?').run(row.compacted)
    return row.revision
  }

  /**
   * What happened after a revision, oldest first.
   *
   * @param kind only of this kind
   * @throws ClusterError `Gone` when the journal no longer reaches back so far
   */
  since(kind: Kind | undefined, revision: number): Change[] {
    const changes: Change[] = []
    for (let from = revision; ; ) {
      const page = this.#page(kind, from)
      changes.push(...page.changes)
      if (!page.more) return changes
      from = page.next
    }
  }

  /**
   * What happens after a revision, as long as it is asked for. Nothing is buffered: who reads too slowly is told so.
   *
   * @throws ClusterError `Gone` when the reader fell behind what the journal keeps
   */
  async *follow(kind: Kind | undefined, revision: number, signal: AbortSignal): AsyncGenerator<Change> {
    let wake = () => {}
    const listener = { changed: () => wake(), resync: () => wake() }
    const stop = () => wake()
    this.#listeners.add(listener)
    signal.addEventListener('abort', stop)
    try {
      for (let from = revision; !signal.aborted && !this.#closed; ) {
        const woken = new Promise<void>((resolve) => {
          wake = resolve
        })
        const page = this.#page(kind, from)
        for (const change of page.changes) {
          yield change
          if (signal.aborted) return
        }
        from = page.next
        if (!page.more) await woken
      }
    } finally {
      this.#listeners.delete(listener)
      signal.removeEventListener('abort', stop)
    }
  }

  listen(listener: ChangeListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Tells all that is new, in order. A change made by a listener is told after this one. */
  tell(): void {
    if (this.#telling || this.#closed) return
    this.#telling = true
    try {
      while (!this.#closed && this.revision !== this.#seen) this.#tellPage()
    } finally {
      this.#telling = false
    }
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#timer)
    this.#watcher?.close()
    this.#listeners.clear()
  }

  #tellPage(): void {
    let page: Page
    try {
      page = this.#page(undefined, this.#seen)
    } catch (error) {
      if (!(error instanceof ClusterError && error.code === 'Gone')) throw error
      this.#seen = this.revision
      this.#each((listener) => listener.resync())
      return
    }
    this.#seen = page.next
    for (const change of page.changes) this.#each((listener) => listener.changed(change))
  }

  /** One listener's fault is not the others', and not the writer's. */
  #each(call: (listener: ChangeListener) => void): void {
    for (const listener of [...this.#listeners]) {
      try {
        call(listener)
      } catch (error) {
        process.emitWarning(error instanceof Error ? error : String(error))
      }
    }
  }

  #page(kind: Kind | undefined, after: number): Page {
    // Asked first: all up to here is in what is read next, so a reader of a quiet kind never falls behind.
    const head = this.revision
    const columns = 'c.revision, c.type, c.api, c.kind, c.namespace, c.name, c.uid, o.json'
    const join = 'changes c LEFT JOIN objects o ON o.uid = c.uid AND o.revision = c.revision'
    const rows = this.#database.read(() =>
      kind === undefined
        ? this.#database
            .sql(`SELECT ${columns} FROM ${join} WHERE c.revision > ? ORDER BY c.revision LIMIT ${PAGE}`)
            .all(after)
        : this.#database
            .sql(
              `SELECT ${columns} FROM ${join} WHERE c.revision > ? AND c.kind = ? AND c.api = ? ORDER BY c.revision LIMIT ${PAGE}`,
            )
            .all(after, kind.kind, kind.apiVersion),
    ) as unknown as Row[]
    // Asked afterwards: another process may forget changes between the two reads.
    const { compacted } = this.#meta()
    if (after < compacted) {
      throw new ClusterError(
        'Gone',
        `changes up to revision ${compacted} are forgotten: list again, then watch`,
      )
    }
    const more = rows.length === PAGE
    const last = rows.at(-1)?.revision ?? after
    return { changes: rows.flatMap(toChange), next: more ? last : Math.max(head, last, after), more }
  }

  #meta(): { revision: number; compacted: number } {
    return this.#database.read(() => this.#database.sql('SELECT revision, compacted FROM meta').get()) as {
      revision: number
      compacted: number
    }
  }

  /** Another process's commit writes to the -wal file, as do our own: so look once for many events. */
  #watchFile(): void {
    try {
      this.#watcher = watch(`${this.#database.file}-wal`, { persistent: false }, () => {
        if (this.#looking || this.#closed) return
        this.#looking = true
        setImmediate(() => {
          this.#looking = false
          this.#look()
        })
      })
      this.#watcher.on('error', () => {
        this.#watcher?.close()
        this.#watcher = undefined
      })
    } catch {
      this.#watcher = undefined
    }
  }

  #look(): void {
    if (this.#closed) return
    if (this.#watcher === undefined) this.#watchFile()
    try {
      this.tell()
    } catch (error) {
      // A read that fails now is tried again in a second; whoever reads or writes is told.
      process.emitWarning(error instanceof Error ? error : String(error))
    }
  }
}

function toChange(row: Row): Change[] {
  const ref: Ref = {
    apiVersion: row.api,
    kind: row.kind,
    ...(row.namespace === '' ? {} : { namespace: row.namespace }),
    name: row.name,
  }
  const { revision, type, uid } = row
  if (type === 'removed') return [{ revision, type, ref, uid }]
  // A newer change of the same object follows in the journal and tells it.
  if (row.json === null) return []
  return [{ revision, type, ref, uid, object: deepFreeze(JSON.parse(row.json) as Resource) }]
}
