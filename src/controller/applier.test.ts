import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cluster, StatusPatch } from '../cluster/cluster.ts'
import { ClusterError } from '../cluster/errors.ts'
import type { Resource } from '../core/resource.ts'
import { applyPlan } from './applier.ts'
import { emptyPlan, type Plan } from './plan.ts'

const object = (name: string): Resource => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })
const status = (name: string): StatusPatch => ({
  ref: { apiVersion: 'v1', kind: 'ConfigMap', name },
  status: {},
})

/** Takes everything but what is called `bad`, and knows nothing called `gone`. */
function cluster(done: string[]): Cluster {
  return {
    apply: async ({ metadata }: Resource) => {
      if (metadata.name === 'bad') throw new ClusterError('Invalid', 'too large')
      done.push(`apply ${metadata.name}`)
      return 'changed'
    },
    create: async ({ metadata }: Resource) => {
      if (metadata.name === 'bad') throw new ClusterError('AlreadyExists', 'it is there')
      done.push(`create ${metadata.name}`)
    },
    applyStatus: async ({ ref }: StatusPatch) => {
      if (ref.name === 'gone') throw new ClusterError('NotFound', 'it is gone')
      done.push(`status ${ref.name}`)
      return 'unchanged'
    },
    remove: async ({ name }: { name: string }, { uid } = { uid: '' }) => {
      if (uid === 'old') throw new ClusterError('Conflict', 'it was recreated since')
      done.push(`remove ${name}`)
    },
    note: () => done.push('note'),
  } as unknown as Cluster
}

async function run(plan: Partial<Plan>): Promise<{ done: string[]; writes: number; failed: string[] }> {
  const done: string[] = []
  const { writes, failures } = await applyPlan(cluster(done), { ...emptyPlan(), ...plan }, 'test')
  return { done, writes, failed: failures.map(({ ref, code }) => `${ref.name} ${code}`) }
}

test('an object that is not taken keeps neither the others nor the statuses back, and is told', async () => {
  const { done, failed } = await run({ apply: [object('bad'), object('good')], status: [status('one')] })
  assert.deepEqual(done, ['apply good', 'status one'])
  assert.deepEqual(failed, ['bad Invalid'])
})

test('what is there already is never overwritten, and told', async () => {
  const { done, failed } = await run({ create: [object('bad')], apply: [object('good')] })
  assert.deepEqual(done, ['apply good'])
  assert.deepEqual(failed, ['bad AlreadyExists'])
})

test('a status whose object is gone is nobody’s business, and what is unchanged is no write', async () => {
  const result = await run({ status: [status('gone'), status('one')] })
  assert.deepEqual(result, { done: ['status one'], writes: 0, failed: [] })
})

test('what has the name of a removed object by now is left alone', async () => {
  const old = { apiVersion: 'v1', kind: 'Service', name: 'old', uid: 'old' }
  const result = await run({ remove: [old, { ...old, name: 'mine', uid: 'mine' }] })
  assert.deepEqual(result, { done: ['remove mine'], writes: 1, failed: [] })
})

test('some statuses are written at a time; a failure is thrown once nothing is under way', async () => {
  let underWay = 0
  let most = 0
  let done = 0
  const slow = {
    applyStatus: async ({ ref }: StatusPatch) => {
      most = Math.max(most, ++underWay)
      await new Promise((resolve) => setImmediate(resolve))
      underWay--
      if (ref.name === '20') throw new ClusterError('Unavailable', 'overloaded')
      done++
      return 'changed'
    },
  } as unknown as Cluster
  const statuses = (count: number): Plan => ({
    ...emptyPlan(),
    status: Array.from({ length: count }, (_, index) => status(String(index))),
  })
  assert.equal((await applyPlan(slow, statuses(20), 'test')).writes, 20)
  assert.equal(most, 8)
  await assert.rejects(applyPlan(slow, statuses(1000), 'test'), { code: 'Unavailable' })
  assert.equal(underWay, 0)
  assert.ok(done < 60, `${done} written although one had failed`)
})
