import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kind, Ref, Resource } from '../../core/resource.ts'
import type { Change } from './journal.ts'
import { Store, type StoreOptions } from './store.ts'

export const DOOR: Kind = {
  apiVersion: 'test.postern.dev/v1',
  kind: 'Door',
  plural: 'doors',
  namespaced: true,
}
export const WALL: Kind = { ...DOOR, kind: 'Wall', plural: 'walls' }

export function door(name: string, rest: object = {}, metadata: object = {}): Resource {
  return {
    apiVersion: DOOR.apiVersion,
    kind: DOOR.kind,
    metadata: { namespace: 'default', name, ...metadata },
    ...rest,
  }
}

export const ref = (name: string): Ref => ({
  apiVersion: DOOR.apiVersion,
  kind: DOOR.kind,
  namespace: 'default',
  name,
})

export function temporary(): { folder: string } & Disposable {
  const folder = mkdtempSync(join(tmpdir(), 'postern-store-'))
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}

export function make(options: StoreOptions = {}): { folder: string; store: Store } & Disposable {
  const { folder } = temporary()
  const store = new Store(folder, options)
  return {
    folder,
    store,
    [Symbol.dispose]() {
      store.close()
      rmSync(folder, { recursive: true })
    },
  }
}

export function collect(store: Store): { changes: Change[]; resyncs: () => number } {
  const changes: Change[] = []
  let resyncs = 0
  store.watch({
    changed: (change) => changes.push(change),
    resync: () => {
      resyncs++
    },
  })
  return { changes, resyncs: () => resyncs }
}

/** A process of its own with a store; `code` sees `store`, `door`, `Store`, `say(text)`. */
export function child(
  folder: string,
  code: string,
): ChildProcess & { said: (text: string) => Promise<void> } {
  const script = `
    import { Store } from ${JSON.stringify(new URL('./store.ts', import.meta.url).href)}
    const store = new Store(${JSON.stringify(folder)})
    const door = (name, rest = {}) => ({ apiVersion: '${DOOR.apiVersion}', kind: 'Door', metadata: { namespace: 'default', name }, ...rest })
    const say = (text) => process.stdout.write(text + '\\n')
    ${code}`
  const process_ = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let output = ''
  process_.stdout!.on('data', (chunk) => {
    output += chunk
  })
  const said = async (text: string) => until(() => output.split('\n').includes(text))
  return Object.assign(process_, { said })
}

export async function until(state: () => boolean): Promise<void> {
  const end = performance.now() + 20_000
  while (!state()) {
    assert.ok(performance.now() < end, `still not: ${state}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

export async function killed(process_: ChildProcess): Promise<void> {
  if (process_.exitCode !== null || process_.signalCode !== null) return
  const ended = new Promise((resolve) => process_.once('exit', resolve))
  process_.kill('SIGKILL')
  await ended
}
