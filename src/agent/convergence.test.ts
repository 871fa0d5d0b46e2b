import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Convergence } from './convergence.ts'

/** A process that is brought to `wanted`, a pass a step; a pass can be held. */
function stage(failed: (error: unknown) => number | undefined = () => undefined) {
  const passes: string[] = []
  let gate: Promise<void> = Promise.resolve()
  let open = (): void => {}
  let fault: Error | undefined
  const convergence = new Convergence<string>({
    async converge(live) {
      passes.push(live)
      await gate
      const thrown = fault
      fault = undefined
      if (thrown !== undefined) throw thrown
    },
    failed,
    settled: () => void passes.push('settled'),
  })
  return {
    passes,
    convergence,
    hold: () => {
      gate = new Promise((resolve) => {
        open = resolve
      })
    },
    release: () => open(),
    fail: (error: Error) => {
      fault = error
    },
  }
}

test('asked for many times it runs once, and once more for what was asked meanwhile', async () => {
  const { passes, convergence, hold, release } = stage()
  hold()
  const done = convergence.attach('tor')
  for (let i = 0; i < 5; i++) void convergence.look()
  await null
  await null
  assert.deepEqual(passes, ['tor'])
  for (let i = 0; i < 5; i++) void convergence.look()
  release()
  await done
  assert.deepEqual(passes, ['tor', 'tor', 'settled'])
})

test('what is asked for while a run ends is not lost', async () => {
  const passes: number[] = []
  let asked = 0
  const convergence: Convergence<string> = new Convergence({
    converge: async () => void passes.push(asked),
    failed: () => undefined,
    async settled() {
      await null
      if (asked++ === 0) void convergence.look()
    },
  })
  await convergence.attach('tor')
  assert.deepEqual(passes, [0, 1])
  // In every microtask after its end.
  for (let ticks = 0; ticks < 8; ticks++) {
    const before = passes.length
    const run = convergence.look()
    for (let tick = 0; tick < ticks; tick++) await null
    const last = convergence.look()
    await Promise.all([run, last])
    await convergence.idle()
    assert.ok(passes.length > before, `after ${ticks} ticks`)
  }
})

test('a failure is tried again after the pause that it is worth', async () => {
  const errors: unknown[] = []
  const { passes, convergence, fail } = stage((error) => {
    errors.push(error)
    return 1
  })
  const fault = new Error('hung')
  fail(fault)
  await convergence.attach('tor')
  const end = Date.now() + 5_000
  while (passes.filter((pass) => pass === 'tor').length < 2) {
    assert.ok(Date.now() < end, passes.join())
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.deepEqual(errors, [fault])
})

test('the failure of a process that is gone is not told; the next one is brought there', async () => {
  const errors: unknown[] = []
  const { passes, convergence, hold, release, fail } = stage((error) => {
    errors.push(error)
    return undefined
  })
  hold()
  const done = convergence.attach('old')
  await null
  await null
  convergence.detach()
  void convergence.attach('new')
  fail(new Error('closed'))
  release()
  await done
  assert.deepEqual(passes, ['old', 'new', 'settled'])
  assert.deepEqual(errors, [])
})

test('without a process nothing is done, and after a stop nothing more', async () => {
  const { passes, convergence } = stage()
  await convergence.look()
  assert.deepEqual(passes, ['settled'])
  convergence.stop()
  await convergence.attach('tor')
  convergence.lookAfter(0)
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(passes, ['settled'])
  assert.equal(convergence.live, 'tor')
})
