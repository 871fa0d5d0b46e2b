import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Backoff } from './backoff.ts'

const LIMITS = { early: 1_000, late: 30_000 }

test('doubles from 0.1 s on, stays at the early limit for a minute, then goes on to the late one', () => {
  const backoff = new Backoff(() => 1)
  const waits: number[] = []
  for (let index = 0; index < 71; index++) waits.push(backoff.next(LIMITS))
  assert.deepEqual(waits.slice(0, 6), [100, 200, 400, 800, 1_000, 1_000])
  // 1.5 s, and then a second each time: the 63rd begins within the first minute.
  assert.deepEqual(waits.slice(62), [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000])
  backoff.reset()
  assert.equal(backoff.next(LIMITS), 100)
})

test('full jitter: each wait is from 0 to a ceiling within the limits; what the server asks for is the least', () => {
  const kinds = [LIMITS, { early: 1_000, late: 5_000 }, { early: 30_000, late: 30_000 }]
  const step = fc.record({
    random: fc.double({ min: 0, max: 1, noNaN: true }),
    limits: fc.constantFrom(...kinds),
    least: fc.constantFrom(0, 0, 500, 120_000),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      let random = 0
      const backoff = new Backoff(() => random)
      let tries = 0
      let waited = 0
      for (const { limits, least, ...of } of steps) {
        random = of.random
        const wait = backoff.next(limits, least)
        const limit = waited < 60_000 ? limits.early : limits.late
        const ceiling = Math.min(limit, 100 * 2 ** tries++)
        assert.ok(wait >= least && wait <= Math.max(least, ceiling), `${wait} of ${least} to ${ceiling}`)
        waited += wait
      }
    }),
  )
})
