import { timestamp } from '../../core/conditions.ts'
import { describeRef, type Ref, type Resource, refOf, sameJson } from '../../core/resource.ts'
import type { Database } from './database.ts'
import type { Journal } from './journal.ts'
import type { Owners } from './merge.ts'
import { MAX_OBJECT_BYTES, tooBig } from './shape.ts'

export interface Row {
  uid: string
  revision: number
  json: string
  managers: string
}

/** The rows of objects: what writing and removing one means for the journal and for whom it owned. */
export class Objects {
  readonly #db: Database
  readonly #journal: Journal
  readonly #now: () => number

  constructor(db: Database, journal: Journal, now: () => number) {
    this.#db = db
    this.#journal = journal
    this.#now = now
  }

  row(ref: Ref): Row | undefined {
    return this.#db
      .sql('SELECT * FROM objects WHERE kind = ? AND api = ? AND namespace = ? AND name = ?')
      .get(ref.kind, ref.apiVersion, ref.namespace ?? '', ref.name) as Row | undefined
  }

  /** Who owns what may change while the object stays: nobody who watches needs to know. */
  keepOwners(row: Row, owners: Owners): void {
    if (sameJson(JSON.parse(row.managers), owners)) return
    this.#db.sql('UPDATE objects SET managers = ? WHERE uid = ?').run(JSON.stringify(owners), row.uid)
  }

  put(row: Row | undefined, object: Resource, owners: Owners): Resource {
    const ref = refOf(object)
    const uid = object.metadata.uid!
    const revision = this.#journal.next()
    object.metadata.resourceVersion = String(revision)
    const json = JSON.stringify(object)
    if (Buffer.byteLength(json) > MAX_OBJECT_BYTES) throw tooBig(describeRef(ref))
    const managers = JSON.stringify(owners)
    if (row === undefined) {
      this.#db
        .sql('INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
        .run(uid, ref.apiVersion, ref.kind, ref.namespace ?? '', ref.name, revision, json, managers)
    } else {
      this.#db
        .sql('UPDATE objects SET revision = ?, json = ?, managers = ? WHERE uid = ?')
        .run(revision, json, managers, uid)
      this.#db.sql('DELETE FROM owners WHERE child = ?').run(uid)
    }
    this.#journal.add('put', ref, uid, revision)
    const references = object.metadata.ownerReferences ?? []
    for (const { uid: owner } of references) {
      this.#db.sql('INSERT OR IGNORE INTO owners VALUES (?, ?)').run(owner, uid)
    }
    // Its owners may have gone while its writer was thinking.
    if (references.length > 0 && !this.#hasOwner(uid)) this.delete([this.#byUid(uid)!])
    return object
  }

  /** Removes objects, or marks those that have finalizers. */
  delete(rows: Row[]): void {
    const gone: Row[] = []
    for (const row of rows) {
      const object = parse(row)
      if ((object.metadata.finalizers ?? []).length === 0) {
        gone.push(row)
      } else if (object.metadata.deletionTimestamp === undefined) {
        object.metadata.deletionTimestamp = timestamp(this.#now())
        const revision = this.#journal.next()
        object.metadata.resourceVersion = String(revision)
        this.#db
          .sql('UPDATE objects SET revision = ?, json = ? WHERE uid = ?')
          .run(revision, JSON.stringify(object), row.uid)
        this.#journal.add('put', refOf(object), row.uid, revision)
      }
    }
    if (gone.length > 0) this.drop(gone)
  }

  /** Takes objects out, then deletes whom they leave without an owner. */
  drop(rows: Row[]): void {
    const orphans = new Map<string, Row>()
    for (const row of rows) {
      const ref = refOf(parse(row))
      this.#db.sql('DELETE FROM objects WHERE uid = ?').run(row.uid)
      this.#db.sql('DELETE FROM owners WHERE child = ?').run(row.uid)
      this.#journal.add('removed', ref, row.uid, this.#journal.next())
    }
    for (const row of rows) {
      const children = this.#db.sql('SELECT child FROM owners WHERE owner = ?').all(row.uid) as {
        child: string
      }[]
      for (const { child } of children) {
        const orphan = this.#hasOwner(child) ? undefined : this.#byUid(child)
        if (orphan !== undefined) orphans.set(child, orphan)
      }
    }
    if (orphans.size > 0) this.delete([...orphans.values()])
  }

  #byUid(uid: string): Row | undefined {
    return this.#db.sql('SELECT * FROM objects WHERE uid = ?').get(uid) as Row | undefined
  }

  #hasOwner(child: string): boolean {
    const sql = 'SELECT 1 FROM owners w JOIN objects o ON o.uid = w.owner WHERE w.child = ? LIMIT 1'
    return this.#db.sql(sql).get(child) !== undefined
  }

  /** Removal and collection are one transaction, so this finds only what another version or a hand left behind. */
  collectOrphans(): void {
    const sql = `SELECT DISTINCT w.child FROM owners w WHERE NOT EXISTS (
      SELECT 1 FROM owners v JOIN objects o ON o.uid = v.owner WHERE v.child = w.child)`
    if (this.#db.read(() => this.#db.sql(sql).get()) === undefined) return
    this.#db.transaction(() => {
      const children = this.#db.sql(sql).all() as { child: string }[]
      this.delete(children.flatMap(({ child }) => this.#byUid(child) ?? []))
    })
  }
}

export function parse(row: { json: string }): Resource {
  return JSON.parse(row.json) as Resource
}
