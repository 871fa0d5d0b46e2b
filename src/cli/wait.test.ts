import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cache, CacheChange } from '../cluster/cluster.ts'
import type { Resource } from '../core/resource.ts'
import { waitFor } from './wait.ts'

function cacheOf(objects: Resource[]): {
  cache: Cache<Resource>
  change(object: Resource): void
  listeners(): number
} {
  const listeners = new Set<(change: CacheChange<Resource>) => void>()
  const key = ({ metadata }: Resource): string => metadata.name
  const cache = {
    subscribe(listener: (change: CacheChange<Resource>) => void) {
      listeners.add(listener)
      for (const after of objects) listener({ key: key(after), after })
      return () => listeners.delete(listener)
    },
  } as unknown as Cache<Resource>
  return {
    cache,
    change(after) {
      for (const listener of listeners) listener({ key: key(after), after })
    },
    listeners: () => listeners.size,
  }
}

const named = (name: string, value?: number): Resource => ({
  apiVersion: 'v1',
  kind: 'X',
  metadata: { name },
  value,
})
const read = (object: Resource): number | undefined => object.value as number | undefined
const options = { limit: 60_000, signal: new AbortController().signal }

test('what is there already is found, and nothing keeps listening', async () => {
  const { cache, listeners } = cacheOf([named('a', 1)])
  assert.equal(await waitFor(cache, 'a', read, options), 1)
  assert.equal(listeners(), 0)
})

test('what comes later is waited for; others do not count', async () => {
  const { cache, change, listeners } = cacheOf([named('a')])
  const value = waitFor(cache, 'a', read, options)
  change(named('b', 2))
  change(named('a', 3))
  assert.equal(await value, 3)
  assert.equal(listeners(), 0)
})

test('a limit and a signal end the wait', async () => {
  const { cache, listeners } = cacheOf([])
  await assert.rejects(waitFor(cache, 'a', read, { ...options, limit: 1 }), { code: 'WaitTimeout' })
  const stop = new AbortController()
  const value = waitFor(cache, 'a', read, { ...options, signal: stop.signal })
  stop.abort(new Error('enough'))
  await assert.rejects(value, /enough/)
  await assert.rejects(waitFor(cache, 'a', read, { ...options, signal: stop.signal }), /enough/)
  assert.equal(listeners(), 0)
})
