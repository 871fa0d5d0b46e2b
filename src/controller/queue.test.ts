import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { WorkQueue } from './queue.ts'

test('a key waits once, runs alone, and runs again when it came while it ran', async () => {
  const seen: string[] = []
  let running = 0
  let release: () => void = () => {}
  const gate = new Promise<void>((resolve) => {
    release = resolve
  })
  let second: () => void = () => {}
  const twice = new Promise<void>((resolve) => {
    second = resolve
  })
  const queue = new WorkQueue(
    async (key) => {
      assert.equal(running++, 0)
      seen.push(key)
      if (seen.length === 1) await gate
      else second()
      running--
      return undefined
    },
    (_key, error) => assert.fail(String(error)),
  )
  queue.add('a')
  queue.add('a')
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  assert.deepEqual(seen, ['a'])
  queue.add('a')
  queue.add('a')
  release()
  await twice
  await queue.close()
  assert.deepEqual(seen, ['a', 'a'])
})

test('a failure is told and tried again; one bad key does not hold up another', async () => {
  const failures: string[] = []
  let tries = 0
  let good = false
  let done: () => void = () => {}
  const finished = new Promise<void>((resolve) => {
    done = resolve
  })
  const queue = new WorkQueue(
    async (key) => {
      if (key === 'good') good = true
      else if (++tries < 3) throw new Error('not yet')
      else done()
      return undefined
    },
    (key) => failures.push(key),
    { concurrency: 1, minBackoff: 1 },
  )
  queue.add('bad')
  queue.add('good')
  await finished
  assert.ok(good)
  assert.deepEqual(failures, ['bad', 'bad'])
  await queue.close()
})

test('whatever comes in whatever order, every key added is worked on after its last add', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 40 }), async (keys) => {
      let clock = 0
      const added = new Map<string, number>()
      const worked = new Map<string, number>()
      const queue = new WorkQueue(
        async (key) => {
          worked.set(key, ++clock)
          await Promise.resolve()
          return undefined
        },
        () => {},
        { concurrency: 2 },
      )
      for (const key of keys) {
        added.set(key, ++clock)
        queue.add(key)
        if (clock % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      while (queue.length > 0) await new Promise((resolve) => setImmediate(resolve))
      for (const [key, at] of added) assert.ok(worked.get(key)! > at)
      await queue.close()
    }),
    { numRuns: 50 },
  )
})
