import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { EmbeddedCluster } from '../../src/cluster/embedded/cluster.ts'
import { Store } from '../../src/cluster/embedded/store.ts'
import { KUBERNETES_KINDS } from '../../src/cluster/kinds.ts'
import { type Condition, findCondition } from '../../src/core/conditions.ts'
import type { Kind, Resource } from '../../src/core/resource.ts'
import { TOR_KINDS } from '../../src/tor/api/kinds.ts'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'

/** A running `postern up`, seen from outside: its manifests folder, its state, its process. */

const MAIN = resolve(import.meta.dirname, '../../src/cli/main.ts')

export interface Up {
  readonly folder: string
  readonly state: string
  readonly process: ChildProcess
  write(file: string, text: string): void
  remove(file: string): void
  get<T extends Resource>(kind: Kind<T>, name: string, namespace?: string): T | undefined
  list<T extends Resource>(kind: Kind<T>): T[]
  /** Waits until `look` gives something; fails with what was seen last. */
  until<T>(what: string, look: () => T | undefined | false, milliseconds?: number): Promise<T>
  condition(kind: Kind, name: string, type: string, namespace?: string): Condition | undefined
  /** Waits until the onion is published; returns its hostname. */
  published(name: string, namespace?: string): Promise<string>
  output(): string
  /** kill -9, and waits for the end. */
  kill(): Promise<void>
  /** Starts `postern up` again on the same folder and state. */
  start(): void
  [Symbol.asyncDispose](): Promise<void>
}

/** Starts `postern up` on a folder of these manifests. */
export function startUp(manifests: Record<string, string>): Up {
  const root = mkdtempSync(join(tmpdir(), 'pst-'))
  const folder = join(root, 'm')
  const state = join(root, 's')
  mkdirSync(folder)
  for (const [file, text] of Object.entries(manifests)) writeFileSync(join(folder, file), text)
  let output = ''
  let child: ChildProcess
  let ended: Promise<void>
  let view: { cluster: EmbeddedCluster; store: Store } | undefined
  const start = (): void => {
    child = spawn(process.execPath, [MAIN, 'up', folder, '--state', state], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NO_COLOR: '1' },
    })
    const take = (chunk: Buffer): void => {
      output += chunk.toString('utf8')
    }
    child.stdout!.on('data', take)
    child.stderr!.on('data', take)
    ended = new Promise((done) => child.once('exit', () => done()))
  }
  start()
  /** The state is `up`'s to make; a look at it comes second. */
  const look = (): EmbeddedCluster | undefined => {
    if (view !== undefined) return view.cluster
    try {
      readFileSync(join(state, 'objects.db'))
    } catch {
      return undefined
    }
    const store = new Store(state)
    view = { store, cluster: new EmbeddedCluster(store, [...KUBERNETES_KINDS, ...TOR_KINDS]) }
    return view.cluster
  }
  const up: Up = {
    folder,
    state,
    get process() {
      return child
    },
    write: (file, text) => writeFileSync(join(folder, file), text),
    remove: (file) => rmSync(join(folder, file)),
    get(kind, name, namespace = 'default') {
      return look()?.cache(kind).get(`${namespace}/${name}`)
    },
    list: (kind) => look()?.cache(kind).list() ?? [],
    async until(what, check, milliseconds = 60_000) {
      const deadline = Date.now() + milliseconds
      for (;;) {
        const found = check()
        if (found !== undefined && found !== false) return found as NonNullable<typeof found>
        if (Date.now() > deadline) {
          throw new Error(`waited ${milliseconds} ms for ${what}; saw:\n${snapshot(look())}\n${output}`)
        }
        await new Promise((done) => setTimeout(done, 50))
      }
    },
    condition(kind, name, type, namespace) {
      const object = up.get(kind, name, namespace)
      return findCondition((object?.status as { conditions?: Condition[] })?.conditions, type)
    },
    async published(name, namespace) {
      await up.until(
        `OnionService ${name} to be published`,
        () => up.condition(ONION_SERVICE, name, 'Published', namespace)?.status === 'True',
      )
      return up.get(ONION_SERVICE, name, namespace)!.status!.hostname!
    },
    output: () => output,
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
    start,
    async [Symbol.asyncDispose]() {
      view?.cluster.close()
      view?.store.close()
      child.kill('SIGTERM')
      const hard = setTimeout(() => child.kill('SIGKILL'), 20_000)
      await ended
      clearTimeout(hard)
      rmSync(root, { recursive: true, force: true })
    },
  }
  return up
}

function snapshot(cluster: EmbeddedCluster | undefined): string {
  if (cluster === undefined) return 'no state yet'
  return TOR_KINDS.flatMap((kind) => cluster.cache(kind).list())
    .map((object) => `${object.kind} ${object.metadata.name}: ${JSON.stringify(object.status)}`)
    .join('\n')
}

/** A daemon that uses the private network of the tests. */
export function torDaemon(options: Record<string, string>, namespace = 'default'): string {
  return document({
    apiVersion: 'tor.fr0st.dev/v1alpha1',
    kind: 'TorDaemon',
    metadata: { name: 'tor', namespace },
    spec: { options },
  })
}

export function onionService(
  name: string,
  more: object = {},
  namespace = 'default',
  service: string = name,
): string {
  return document({
    apiVersion: 'tor.fr0st.dev/v1alpha1',
    kind: 'OnionService',
    metadata: { name, namespace },
    spec: { ports: [{ virtualPort: 80, backend: { service, port: 80 } }], ...more },
  })
}

/** A Service without selector and its EndpointSlice, on this machine. */
export function backend(name: string, port: number, namespace = 'default'): string {
  return [
    document({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace },
      spec: { ports: [{ name: 'http', port: 80 }] },
    }),
    document({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name, namespace, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['127.0.0.1'] }],
      ports: [{ name: 'http', port }],
    }),
  ].join('---\n')
}

/** JSON is YAML; no quoting to get wrong. */
export function document(object: object): string {
  return `${JSON.stringify(object)}\n`
}

/** A web server that answers each request with its text, at any free port if none is given. */
export async function webServer(
  answer: string,
  at = 0,
): Promise<{ port: number; server: Server } & Disposable> {
  const server = createServer((_request, response) => response.end(answer))
  await new Promise<void>((done) => server.listen(at, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    port,
    server,
    [Symbol.dispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}
