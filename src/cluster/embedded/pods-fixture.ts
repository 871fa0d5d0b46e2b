import { type Kind, keyFor, keyOf, type Ref, type Resource, sameJson } from '../../core/resource.ts'
import type { Applied, Cache, CacheChange, Cluster, NamedCache, StatusPatch } from '../cluster.ts'
import { ClusterError } from '../errors.ts'

/** The least of a cluster that the pod runner needs, in memory: for its tests only. */
export class MemoryCluster implements Cluster {
  readonly #objects = new Map<string, Map<string, Resource>>()
  readonly #listeners = new Map<string, Set<(change: CacheChange<Resource>) => void>>()
  #next = 1
  /** Every status write, by `Kind namespace/name`. */
  readonly statusWrites: string[] = []

  cache<T extends Resource>(kind: Kind<T>): Cache<T> {
    const objects = this.#of(kind.kind) as Map<string, T>
    const listeners = this.#listenersOf(kind.kind)
    return {
      ready: Promise.resolve(),
      get: (key) => objects.get(key),
      list: (namespace) =>
        [...objects.values()].filter(
          ({ metadata }) => (namespace ?? metadata.namespace) === metadata.namespace,
        ),
      by: () => [],
      index: () => {},
      subscribe: (listener) => {
        const typed = listener as (change: CacheChange<Resource>) => void
        listeners.add(typed)
        for (const [key, after] of objects) listener({ key, after })
        return () => listeners.delete(typed)
      },
    }
  }

  named<T extends Resource>(kind: Kind<T>): NamedCache<T> {
    throw new Error(`the pod runner reads no ${kind.kind} by name`)
  }

  async get<T extends Resource>(
    kind: Kind<T>,
    ref: { namespace?: string; name: string },
  ): Promise<T | undefined> {
    return this.#of(kind.kind).get(keyFor(ref.namespace, ref.name)) as T | undefined
  }

  async apply(object: Resource): Promise<Applied> {
    const key = keyOf(object)
    const before = this.#of(object.kind).get(key)
    const { uid, generation = 0 } = before?.metadata ?? {}
    const isSameSpec = before !== undefined && sameJson(before.spec, object.spec)
    const metadata = {
      ...object.metadata,
      uid: uid ?? `uid-${this.#next++}`,
      generation: isSameSpec ? generation : generation + 1,
    }
    const status = before?.status === undefined ? {} : { status: before.status }
    const after = structuredClone({ ...object, ...status, metadata })
    if (sameJson(before, after)) return 'unchanged'
    this.#put(object.kind, key, before, after)
    return before === undefined ? 'created' : 'changed'
  }

  async create(object: Resource): Promise<Resource> {
    await this.apply(object)
    return this.#of(object.kind).get(keyOf(object))!
  }

  async applyStatus({ ref, status }: StatusPatch): Promise<Applied> {
    const key = keyFor(ref.namespace, ref.name)
    const before = this.#of(ref.kind).get(key)
    if (before === undefined) throw new ClusterError('NotFound', `${ref.kind} ${key} is gone`)
    this.statusWrites.push(`${ref.kind} ${key}`)
    this.#put(ref.kind, key, before, structuredClone({ ...before, status }))
    return 'changed'
  }

  async remove(ref: Ref): Promise<void> {
    const key = keyFor(ref.namespace, ref.name)
    const before = this.#of(ref.kind).get(key)
    if (before === undefined) return
    this.#put(ref.kind, key, before, undefined)
    for (const objects of this.#objects.values()) {
      for (const child of objects.values()) {
        const isOwned = child.metadata.ownerReferences?.some(({ uid }) => uid === before.metadata.uid)
        if (isOwned) this.#put(child.kind, keyOf(child), child, undefined)
      }
    }
  }

  note(): void {}

  #put(kind: string, key: string, before: Resource | undefined, after: Resource | undefined): void {
    if (after === undefined) this.#of(kind).delete(key)
    else this.#of(kind).set(key, after)
    const change = { key, ...(before && { before }), ...(after && { after }) }
    for (const listener of this.#listenersOf(kind)) listener(change)
  }

  #of(kind: string): Map<string, Resource> {
    return made(this.#objects, kind, () => new Map())
  }

  #listenersOf(kind: string): Set<(change: CacheChange<Resource>) => void> {
    return made(this.#listeners, kind, () => new Set())
  }
}

function made<T>(map: Map<string, T>, key: string, make: () => T): T {
  const value = map.get(key) ?? make()
  map.set(key, value)
  return value
}

/** A program for test pods: serves its health on POD_IP, tells what it was given, does what its args say. */
export const PROGRAM = `
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
const [out, ...words] = process.argv.slice(2)
let child
if (words.includes('child')) {
  child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' })
  child.unref()
}
// Whole at once: two pods of a claim may write at the same time.
const whole = out + '.' + process.pid
writeFileSync(whole, JSON.stringify({ pid: process.pid, child: child?.pid, argv: process.argv.slice(2), env: process.env, cwd: process.cwd() }))
renameSync(whole, out)
console.log('begun')
if (words.includes('crash')) {
  console.error('no such luck')
  process.exit(3)
}
const has = (name) => process.env.STATE_DIR !== undefined && existsSync(process.env.STATE_DIR + '/' + name)
createServer((request, response) => {
  const bad = (request.url === '/readyz' && has('unready')) || (request.url === '/livez' && has('dead'))
  response.writeHead(bad ? 503 : 200).end()
}).listen(9080, process.env.POD_IP)
process.on('SIGTERM', () => process.exit(0))
`

export interface TestTemplate {
  args?: string[]
  labels?: Record<string, string>
  annotations?: Record<string, string>
  container?: Record<string, unknown>
  volumes?: Record<string, unknown>[]
  mounts?: Record<string, unknown>[]
  env?: Record<string, unknown>[]
  replicas?: number
}

/** A Deployment of the test program with a claim at /data, where it writes out.json. */
export function deployment(name: string, template: TestTemplate = {}): Resource {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'shop' },
    spec: {
      replicas: template.replicas ?? 1,
      template: {
        metadata: { labels: template.labels ?? { app: name }, annotations: template.annotations ?? {} },
        spec: {
          terminationGracePeriodSeconds: 2,
          containers: [
            {
              name: 'main',
              command: ['agent'],
              args: ['/data/out.json', ...(template.args ?? [])],
              env: [
                { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
                { name: 'STATE_DIR', value: '/data' },
                ...(template.env ?? []),
              ],
              ports: [{ name: 'metrics', containerPort: 9080 }],
              volumeMounts: [{ name: 'data', mountPath: '/data' }, ...(template.mounts ?? [])],
              ...template.container,
            },
          ],
          volumes: [
            { name: 'data', persistentVolumeClaim: { claimName: `${name}-data` } },
            ...(template.volumes ?? []),
          ],
        },
      },
    },
  }
}
