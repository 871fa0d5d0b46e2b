import { randomUUID } from 'node:crypto'
import { timestamp } from '../../core/conditions.ts'
import { describeRef, type Kind, type Ref, type Resource, refOf, sameJson } from '../../core/resource.ts'
import type { Applied, FieldManager, Preconditions, StatusPatch } from '../cluster.ts'
import { ClusterError } from '../errors.ts'
import { checkOwnership } from '../ownership.ts'
import { Database } from './database.ts'
import { type Change, type ChangeListener, Journal } from './journal.ts'
import { mergeApply, type Owners, ownersAfterUpdate } from './merge.ts'
import { Objects, parse, type Row } from './objects.ts'
import { checkShape, type Json, normalise } from './shape.ts'

export interface StoreOptions {
  /** How many changes are kept for watchers (default 10,000). */
  changes?: number
  /** Milliseconds since the epoch (default Date.now). */
  now?: () => number
  /** How often another process's changes are looked for, should the file watch miss them (default 1000 ms). */
  pollMs?: number
  /** The database grows no further. */
  maxBytes?: number
}

export interface Written {
  result: Applied
  /** As it is now, the caller's to change. */
  object: Resource
}

type Gvk = Pick<Kind, 'apiVersion' | 'kind'>

/**
 * The embedded cluster's objects, with the semantics of the Kubernetes API as far as a controller can tell: server-side
 * apply, status apart, optimistic concurrency, finalizers, owner garbage collection, watch by revision. Everything is
 * synchronous; every mutation is one transaction. Several processes may open the same folder.
 *
 * All methods that write throw PosternError `StorageFull` (nothing was changed) and ClusterError `Invalid`,
 * `Unavailable` besides what they name.
 */
export class Store {
  readonly folder: string
  readonly #db: Database
  readonly #journal: Journal
  readonly #now: () => number
  readonly #objects: Objects

  constructor(folder: string, options: StoreOptions = {}) {
    this.folder = folder
    this.#now = options.now ?? Date.now
    this.#db = new Database(folder, options.maxBytes)
    this.#journal = new Journal(this.#db, options.changes ?? 10_000, options.pollMs ?? 1000)
    this.#objects = new Objects(this.#db, this.#journal, this.#now)
    try {
      this.#objects.collectOrphans()
    } catch (error) {
      // A full disk must not keep what is there from being read; the next open collects.
      if (!(error instanceof ClusterError || (error as { code?: unknown }).code === 'StorageFull'))
        throw error
    }
  }

  /** Of the newest change. */
  get revision(): number {
    return this.#journal.revision
  }

  get(ref: Ref): Resource | undefined {
    const row = this.#db.read(() => this.#objects.row(ref))
    return row === undefined ? undefined : parse(row)
  }

  /** By namespace and name. */
  list(kind: Gvk, namespace?: string): Resource[] {
    const parameters = [kind.kind, kind.apiVersion, ...(namespace === undefined ? [] : [namespace])]
    const filter = namespace === undefined ? '' : 'AND namespace = ?'
    const sql = `SELECT json FROM objects WHERE kind = ? AND api = ? ${filter} ORDER BY namespace, name`
    const objects: Resource[] = []
    return this.#db.read(() => {
      // Row by row: all texts at once would double the memory, which V8 does not give back.
      for (const row of this.#db.sql(sql).iterate(...parameters)) objects.push(parse(row as unknown as Row))
      return objects
    })
  }

  /** Who owns fields of an object by apply. */
  managers(ref: Ref): FieldManager[] {
    const row = this.#db.read(() => this.#objects.row(ref))
    if (row === undefined) return []
    return Object.keys(JSON.parse(row.managers) as Owners).flatMap((key) =>
      key.startsWith('apply:') ? [key.slice('apply:'.length)] : [],
    )
  }

  /**
   * Creates, and never overwrites. Its fields are owned apart from those that the same manager applies, as in
   * Kubernetes: a later apply that does not name them leaves them.
   *
   * @throws ClusterError `AlreadyExists`
   */
  create(object: Resource, manager: FieldManager): Resource {
    const wanted = normalise(object)
    return this.#write(() => {
      if (this.#objects.row(refOf(wanted)) !== undefined) {
        throw new ClusterError('AlreadyExists', `${describeRef(refOf(wanted))} is there already`)
      }
      const { merged, owners } = mergeApply({}, viewOf(wanted), {}, `update:${manager}`)
      return this.#insert(wanted, merged, owners)
    }, isDurable(wanted))
  }

  /**
   * Server-side apply of everything but status; `metadata.uid` and `metadata.resourceVersion` are preconditions when
   * given.
   *
   * @param options force false: throw instead of taking fields that others own
   * @throws ClusterError `Conflict`, `Taken`
   */
  apply(object: Resource, manager: FieldManager, options: { force?: boolean } = {}): Written {
    const wanted = normalise(object)
    const key = `apply:${manager}`
    return this.#write(() => {
      const row = this.#objects.row(refOf(wanted))
      this.#checkPreconditions(refOf(wanted), row, preconditionsOf(wanted))
      if (row === undefined) {
        const { merged, owners } = mergeApply({}, viewOf(wanted), {}, key)
        return { result: 'created', object: this.#insert(wanted, merged, owners) }
      }
      const live = parse(row)
      checkOwnership(wanted, live)
      const before = viewOf(live)
      const merge = mergeApply(before, viewOf(wanted), JSON.parse(row.managers) as Owners, key)
      refuseConflicts(refOf(wanted), manager, merge.conflicts, options.force ?? true)
      return this.#replace(row, live, before, merge.merged, merge.owners)
    }, isDurable(wanted))
  }

  /**
   * Replaces everything but status; with `metadata.resourceVersion` only when nobody wrote since.
   *
   * @throws ClusterError `NotFound`, `Conflict`
   */
  update(object: Resource, manager: FieldManager): Resource {
    const wanted = normalise(object)
    return this.#write(() => {
      const row = this.#objects.row(refOf(wanted))
      if (row === undefined) throw notFound(refOf(wanted))
      this.#checkPreconditions(refOf(wanted), row, preconditionsOf(wanted))
      const live = parse(row)
      const before = viewOf(live)
      const after = viewOf(wanted)
      const owners = JSON.parse(row.managers) as Owners
      // The status keeps its owners: it is in neither of the two views.
      const status = Object.fromEntries(Object.entries(owners).filter(([name]) => name.startsWith('status:')))
      const rest = Object.fromEntries(Object.entries(owners).filter(([name]) => !name.startsWith('status:')))
      const next = { ...ownersAfterUpdate(before, after, rest, `update:${manager}`), ...status }
      return this.#replace(row, live, before, after, next).object
    }, isDurable(wanted))
  }

  /**
   * Server-side apply of the status alone: a manager's former status fields that it no longer names go, conditions
   * merge by type.
   *
   * @throws ClusterError `NotFound`, `Conflict`
   */
  applyStatus(patch: StatusPatch, manager: FieldManager, options: { force?: boolean } = {}): Written {
    checkShape(patch.status, `the status of ${describeRef(patch.ref)}`)
    const status = JSON.parse(JSON.stringify(patch.status)) as Json
    return this.#write(() => {
      const row = this.#objects.row(patch.ref)
      if (row === undefined) throw notFound(patch.ref)
      const live = parse(row)
      const before: Json = live.status === undefined ? {} : { status: live.status }
      const merge = mergeApply(before, { status }, JSON.parse(row.managers) as Owners, `status:${manager}`)
      refuseConflicts(patch.ref, manager, merge.conflicts, options.force ?? true)
      if (sameJson(before, merge.merged)) {
        this.#objects.keepOwners(row, merge.owners)
        return { result: 'unchanged', object: live }
      }
      const { status: _, ...rest } = live
      const object = { ...rest, ...merge.merged } as Resource
      return { result: 'changed', object: this.#objects.put(row, object, merge.owners) }
    })
  }

  /**
   * Removes, or while there are finalizers marks for removal. What it owned goes with it.
   *
   * @returns whether there was anything
   * @throws ClusterError `Conflict` when a precondition does not hold
   */
  remove(ref: Ref, preconditions: Preconditions = {}): boolean {
    return this.#write(() => {
      const row = this.#objects.row(ref)
      if (row === undefined) return false
      this.#checkPreconditions(ref, row, preconditions)
      this.#objects.delete([row])
      return true
    })
  }

  /** Removes what was written longest ago, down to so many objects of a kind. */
  trim(kind: Gvk, keep: number): void {
    const count = this.#db.read(() =>
      this.#db
        .sql('SELECT count(*) AS n FROM objects WHERE kind = ? AND api = ?')
        .get(kind.kind, kind.apiVersion),
    ) as { n: number }
    if (count.n <= keep) return
    this.#write(() => {
      const rows = this.#db
        .sql('SELECT * FROM objects WHERE kind = ? AND api = ? ORDER BY revision LIMIT ?')
        .all(kind.kind, kind.apiVersion, count.n - keep) as unknown as Row[]
      this.#objects.delete(rows)
    }, false)
  }

  /** Several mutations as one transaction: all or nothing, and one wait for the disk. A mutation that throws undoes itself. */
  batch<T>(work: () => T): T {
    return this.#write(work)
  }

  /**
   * What happened after a revision, oldest first; of changes of one object that follow each other only the last.
   *
   * @throws ClusterError `Gone` when that is longer ago than the store remembers
   */
  changesSince(kind: Kind | undefined, revision: number): Change[] {
    return this.#journal.since(kind, revision)
  }

  /**
   * What happens after a revision, until the signal. Reads when it is asked, buffers nothing.
   *
   * @throws ClusterError `Gone` when the reader is too slow
   */
  follow(kind: Kind | undefined, revision: number, signal: AbortSignal): AsyncGenerator<Change> {
    return this.#journal.follow(kind, revision, signal)
  }

  /** Tells of every change after its commit, in order, those of other processes too. Returns the way to stop. */
  watch(listener: ChangeListener): () => void {
    return this.#journal.listen(listener)
  }

  close(): void {
    this.#journal.close()
    this.#db.close()
  }

  #write<T>(work: () => T, durable = true): T {
    const result = this.#db.transaction(work, durable)
    if (!this.#db.inTransaction) this.#journal.tell()
    return result
  }

  #checkPreconditions(ref: Ref, row: Row | undefined, { uid, resourceVersion }: Preconditions): void {
    if (uid !== undefined && uid !== row?.uid) {
      const what = row === undefined ? 'is gone' : 'was recreated since'
      throw new ClusterError(
        'Conflict',
        `${describeRef(ref)} ${what}: read it again (uid ${uid} was expected)`,
      )
    }
    if (resourceVersion !== undefined && resourceVersion !== (row && String(row.revision))) {
      throw new ClusterError(
        'Conflict',
        `${describeRef(ref)} was changed since it was read: read it again, and retry`,
      )
    }
  }

  #insert(wanted: Resource, view: Json, owners: Owners): Resource {
    checkOwners(wanted)
    const { name, namespace } = wanted.metadata
    const metadata = {
      name,
      ...(namespace === undefined || namespace === '' ? {} : { namespace }),
      uid: randomUUID(),
      resourceVersion: '',
      generation: 1,
      creationTimestamp: timestamp(this.#now()),
      ...(view.metadata as Json | undefined),
    }
    const object = { apiVersion: wanted.apiVersion, kind: wanted.kind, ...view, metadata } as Resource
    return this.#objects.put(undefined, object, owners)
  }

  /** Puts a new view of everything but status in place of the old. */
  #replace(row: Row, live: Resource, before: Json, after: Json, owners: Owners): Written {
    if (sameJson(before, after)) {
      this.#objects.keepOwners(row, owners)
      return { result: 'unchanged', object: live }
    }
    const { metadata: shared, ...rest } = after
    const { labels: _l, annotations: _a, ownerReferences: _o, finalizers: _f, ...own } = live.metadata
    const { metadata: _, ...restBefore } = before
    const metadata = { ...own, ...(shared as Json | undefined) }
    if (!sameJson(restBefore, rest)) metadata.generation = (own.generation ?? 0) + 1
    const object = { apiVersion: live.apiVersion, kind: live.kind, metadata, ...rest } as Resource
    if (live.status !== undefined) object.status = live.status
    checkOwners(object)
    if (own.deletionTimestamp !== undefined) {
      const old = new Set(live.metadata.finalizers)
      const added = object.metadata.finalizers?.find((name) => !old.has(name))
      if (added !== undefined) {
        const what = describeRef(refOf(live))
        throw new ClusterError(
          'Invalid',
          `${what} is being deleted: the finalizer ${added} cannot be added any more`,
        )
      }
      if ((object.metadata.finalizers ?? []).length === 0) {
        this.#objects.drop([row])
        return { result: 'changed', object }
      }
    }
    return { result: 'changed', object: this.#objects.put(row, object, owners) }
  }
}

/** What apply and update own: everything but identity, what the store itself writes, and status. */
function viewOf(object: Resource): Json {
  const { apiVersion: _v, kind: _k, status: _s, metadata, ...rest } = object
  const shared: Json = {}
  for (const field of ['labels', 'annotations', 'ownerReferences', 'finalizers'] as const) {
    if (metadata[field] !== undefined && metadata[field] !== null) shared[field] = metadata[field]
  }
  return Object.keys(shared).length === 0 ? rest : { metadata: shared, ...rest }
}

function preconditionsOf({ metadata: { uid, resourceVersion } }: Resource): Preconditions {
  return {
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  }
}

function refuseConflicts(
  ref: Ref,
  manager: FieldManager,
  conflicts: { manager: string; path: string }[],
  force: boolean,
): void {
  if (force || conflicts.length === 0) return
  const list = conflicts.map(
    ({ manager: other, path }) => `${other.slice(other.indexOf(':') + 1)} owns ${path}`,
  )
  const what = describeRef(ref)
  throw new ClusterError(
    'Conflict',
    `${what}: ${manager} may not change it: ${[...new Set(list)].join(', ')}`,
  )
}

function checkOwners(object: Resource): void {
  const references: unknown = object.metadata.ownerReferences
  if (references === undefined) return
  const what = describeRef(refOf(object))
  const valid =
    Array.isArray(references) && references.every((item) => typeof item?.uid === 'string' && item.uid !== '')
  if (!valid)
    throw new ClusterError(
      'Invalid',
      `${what}: metadata.ownerReferences: every item needs the uid of its owner`,
    )
  if (references.filter((item) => item.controller === true).length > 1) {
    throw new ClusterError(
      'Invalid',
      `${what}: metadata.ownerReferences: only one owner can be the controller`,
    )
  }
}

function notFound(ref: Ref): ClusterError {
  return new ClusterError('NotFound', `${describeRef(ref)} is not there`)
}

/** Nobody misses an event after a power failure. */
function isDurable(object: Resource): boolean {
  return object.kind !== 'Event'
}
