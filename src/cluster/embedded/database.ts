import { closeSync, mkdirSync, openSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { codeOf, messageOf, PosternError } from '../../core/errors.ts'
import { ClusterError } from '../errors.ts'

const SCHEMA_VERSION = 1
/** Result codes of https://sqlite.org/rescode.html; the low byte is the family. */
const BUSY = 5
const LOCKED = 6
const IO = 10
const CORRUPT = 11
const FULL = 13
const NOT_A_DATABASE = 26

const SCHEMA = `
  CREATE TABLE meta (one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL, compacted INTEGER NOT NULL);
  INSERT INTO meta VALUES (1, 0, 0);
  CREATE TABLE objects (
    uid TEXT NOT NULL UNIQUE, api TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    revision INTEGER NOT NULL, json TEXT NOT NULL, managers TEXT NOT NULL
  );
  CREATE UNIQUE INDEX objects_by_name ON objects (kind, api, namespace, name);
  CREATE TABLE owners (owner TEXT NOT NULL, child TEXT NOT NULL, PRIMARY KEY (owner, child)) WITHOUT ROWID;
  CREATE INDEX owners_by_child ON owners (child);
  CREATE TABLE changes (
    revision INTEGER PRIMARY KEY, type TEXT NOT NULL, api TEXT NOT NULL, kind TEXT NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL
  );
`

/**
 * One SQLite file: schema, transactions, and errors that say what to do.
 *
 * In WAL a killed process loses nothing in either mode of `synchronous`, but NORMAL may lose the newest commits when
 * the power fails. Here that could be the key of an onion address that is already in use, so commits are FULL
 * (about a millisecond); only what nobody would miss asks for less.
 */
export class Database {
  readonly folder: string
  readonly file: string
  readonly #db: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()
  #depth = 0
  #failure: unknown

  /**
   * @param maxBytes the file grows no further; a full disk is the other limit
   * @throws PosternError `StorageFull`, `StorageFailed`, `StorageCorrupt`, `StorageNewer`
   */
  constructor(folder: string, maxBytes?: number) {
    this.folder = folder
    this.file = join(folder, 'objects.db')
    let db: DatabaseSync | undefined
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      // SQLite would use the umask, and Secrets are in it. The files beside it get the mode of this one.
      closeSync(openSync(this.file, 'a', 0o600))
      db = new DatabaseSync(this.file, { timeout: 5000 })
      db.exec('PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL')
      // What is removed may have been a private key.
      db.exec('PRAGMA secure_delete=ON; PRAGMA journal_size_limit=16777216')
      if (maxBytes !== undefined) db.exec(`PRAGMA max_page_count=${Math.ceil(maxBytes / 4096)}`)
      this.#db = db
      this.#prepareSchema()
    } catch (error) {
      db?.close()
      throw this.#explain(error)
    }
  }

  get inTransaction(): boolean {
    return this.#depth > 0
  }

  /** A prepared statement, kept by its text. */
  sql(text: string): StatementSync {
    let statement = this.#statements.get(text)
    if (statement === undefined) {
      statement = this.#db.prepare(text)
      this.#statements.set(text, statement)
    }
    return statement
  }

  /** Runs a read, with its errors explained. */
  read<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw this.#explain(error)
    }
  }

  /**
   * All of the work, or nothing of it. A transaction in a transaction is a savepoint: its failure undoes only itself.
   *
   * @param durable false: a power failure (never a killed process) may lose it
   */
  transaction<T>(work: () => T, durable = true): T {
    const outer = this.#depth === 0
    try {
      if (outer) {
        this.#failure = undefined
        this.#db.exec(`PRAGMA synchronous=${durable ? 'FULL' : 'NORMAL'}`)
        this.#db.exec('BEGIN IMMEDIATE')
      } else {
        this.#db.exec('SAVEPOINT nested')
      }
    } catch (error) {
      throw this.#explain(error)
    }
    this.#depth++
    try {
      const result = work()
      // SQLite takes back everything on some failures; a caller who went on after one must not be told "done".
      if (!this.#db.isTransaction) throw this.#failure ?? new Error('the transaction was rolled back')
      this.#db.exec(outer ? 'COMMIT' : 'RELEASE nested')
      return result
    } catch (error) {
      if (this.#db.isTransaction) {
        this.#db.exec(outer ? 'ROLLBACK' : 'ROLLBACK TO nested; RELEASE nested')
      } else {
        this.#failure = error
      }
      throw this.#explain(error)
    } finally {
      this.#depth--
    }
  }

  close(): void {
    this.#statements.clear()
    this.#db.close()
  }

  #prepareSchema(): void {
    const read = () =>
      (this.#db.prepare('PRAGMA user_version').get() as { user_version: number }).user_version
    if (read() === 0) {
      this.#db.exec('BEGIN IMMEDIATE')
      // Another process may have been first.
      if (read() === 0) this.#db.exec(`${SCHEMA}; PRAGMA user_version=${SCHEMA_VERSION}`)
      this.#db.exec('COMMIT')
    }
    if (read() > SCHEMA_VERSION) {
      throw new PosternError(
        'StorageNewer',
        `${this.file} was written by a newer version of Postern: run that version, or choose another state folder`,
      )
    }
  }

  #explain(error: unknown): unknown {
    if (error instanceof PosternError) return error
    const system = codeOf(error)
    if (system !== undefined && ['ENOSPC', 'EDQUOT'].includes(system)) return this.#full(error)
    if (system !== undefined && ['EACCES', 'EROFS', 'ENOTDIR', 'EEXIST', 'EPERM'].includes(system)) {
      return new PosternError(
        'StorageFailed',
        `${this.folder} cannot be written (${system}): make it a folder that this user may write, or choose another`,
        { cause: error },
      )
    }
    const result = (error as { errcode?: unknown } | null)?.errcode
    if (typeof result !== 'number') return error
    const family = result & 0xff
    if (family === FULL || (family === IO && this.#noSpace())) return this.#full(error)
    if (family === BUSY || family === LOCKED) {
      const message = `${this.file} is held by another process for more than 5 s: nothing was changed, try again`
      return new ClusterError('Unavailable', message, { cause: error })
    }
    if (family === CORRUPT || family === NOT_A_DATABASE) {
      return new PosternError(
        'StorageCorrupt',
        `${this.file} is damaged (${messageOf(error)}): move it and its -wal file away, or restore them from a backup`,
        { cause: error },
      )
    }
    return new PosternError(
      'StorageFailed',
      `${this.file}: ${messageOf(error)}: nothing was changed; check the disk and the rights on the folder`,
      { cause: error },
    )
  }

  #noSpace(): boolean {
    try {
      return statfsSync(this.folder).bavail === 0
    } catch {
      return false
    }
  }

  #full(cause: unknown): PosternError {
    return new PosternError(
      'StorageFull',
      `no space left in ${this.folder}: nothing was changed; make room there, and it goes on`,
      { cause },
    )
  }
}
