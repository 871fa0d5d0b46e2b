import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'node:test'
import { generateIdentity, identityToRecipient } from 'age-encryption'
import { Store } from '../../cluster/embedded/store.ts'
import type { Secret } from '../../cluster/kinds.ts'
import { ONION_SERVICE, type OnionService } from '../../tor/api/onion-service.ts'
import { readExpandedSecret, writeOnionKeyFiles } from '../../tor/onion/files.ts'
import { generateOnionKey, type OnionKey } from '../../tor/onion/key.ts'
import { keySecret } from '../../tor/operator/onion-keys.ts'
import { type CheckedKey, checkKeys } from './check.ts'

/** An empty state folder before each test, an identity of age, and what is said. */
export let folder: string
export let state: string
export let identityFile: string
export let recipient: string
export let lines: string[]
export let printed: string[]
export const say = (line: string): void => void lines.push(line)
export const print = (text: string): void => void printed.push(text)

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'ptk-'))
  state = join(folder, 'state')
  mkdirSync(state)
  new Store(state).close()
  const identity = await generateIdentity()
  recipient = await identityToRecipient(identity)
  identityFile = file('identity', `# mine\n${identity}\n`)
  lines = []
  printed = []
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

export const path = (name: string): string => join(folder, name)
export function file(name: string, content: string | Uint8Array): string {
  writeFileSync(path(name), content, { mode: 0o600 })
  return path(name)
}

export function within<T>(work: (store: Store) => T, where: string = state): T {
  const store = new Store(where)
  try {
    return work(store)
  } finally {
    store.close()
  }
}

export function onion(name: string, spec: object = {}, namespace = 'news'): OnionService {
  const { apiVersion, kind } = ONION_SERVICE
  const ports = [{ virtualPort: 80, backend: { service: 'web', port: 80 } }]
  const object = { apiVersion, kind, metadata: { namespace, name }, spec: { ports, ...spec } }
  return within((store) => store.create(object, 'test')) as OnionService
}

/** With its key, as the operator makes it. */
export function served(name: string, spec: object = {}, namespace = 'news'): OnionKey {
  const key = generateOnionKey()
  const object = onion(name, spec, namespace)
  within((store) => store.create(keySecret(object, key), 'test'))
  return key
}

export const secretOf = (name: string, namespace = 'news', where: string = state): Secret | undefined =>
  within(
    (store) => store.get({ apiVersion: 'v1', kind: 'Secret', namespace, name }) as Secret | undefined,
    where,
  )

export function bytesOf(secret: Secret | undefined): Buffer {
  const data = Buffer.from(secret?.data?.hs_ed25519_secret_key ?? '', 'base64')
  return Buffer.from(readExpandedSecret(data) ?? [])
}

export async function looked(more: object = {}): Promise<CheckedKey[]> {
  printed = []
  await checkKeys([], { state, namespace: undefined, output: 'json', ...more }, print).catch(() => {})
  return JSON.parse(printed.join('')) as CheckedKey[]
}

/** A HiddenServiceDir. */
export function torFolder(name: string, key: OnionKey, clients: Record<string, string> = {}): string {
  mkdirSync(path(name), { mode: 0o700, recursive: true })
  for (const [one, content] of Object.entries(writeOnionKeyFiles(key)))
    writeFileSync(join(path(name), one), content, { mode: 0o600 })
  mkdirSync(join(path(name), 'authorized_clients'), { recursive: true })
  for (const [one, text] of Object.entries(clients))
    writeFileSync(join(path(name), 'authorized_clients', one), text, { mode: 0o600 })
  return path(name)
}
