import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cluster } from '../cluster/cluster.ts'
import { POD } from '../cluster/kinds.ts'
import { fence } from './fence.ts'

test('behind a fence all reads go on, and no write does once it is closed', async () => {
  const done: string[] = []
  const cluster = new Proxy({} as Cluster, {
    get: (_target, verb: string) => () => {
      done.push(verb)
      return verb === 'note' ? undefined : Promise.resolve('changed')
    },
  })
  let open = true
  const fenced = fence(cluster, () => open)
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'a', name: 'b' } }
  const ref = { apiVersion: 'v1', kind: 'Pod', namespace: 'a', name: 'b' }
  const reads = (): unknown[] => [fenced.cache(POD), fenced.named(POD), fenced.get(POD, ref)]
  const writes = (): Promise<unknown>[] => [
    fenced.apply(pod, 'm'),
    fenced.create(pod, 'm'),
    fenced.applyStatus({ ref, status: {} }, 'm'),
    fenced.remove(ref),
  ]
  const note = { about: ref, type: 'Normal' as const, reason: 'Because', message: 'm' }
  await Promise.all([...reads(), ...writes()])
  fenced.note(note)
  assert.deepEqual(done, ['cache', 'named', 'get', 'apply', 'create', 'applyStatus', 'remove', 'note'])
  open = false
  done.length = 0
  reads()
  fenced.note(note)
  const results = await Promise.allSettled(writes())
  assert.deepEqual(
    results.map((result) => result.status === 'rejected' && result.reason.code),
    ['Unavailable', 'Unavailable', 'Unavailable', 'Unavailable'],
  )
  assert.deepEqual(done, ['cache', 'named', 'get'])
})
