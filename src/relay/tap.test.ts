import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import fc from 'fast-check'
import { Tap } from './tap.ts'

/** Like a socket that sends when it is told to, and looks at the bytes only then, as the system does. */
class Slow extends Writable {
  /** Value and count of each run of equal bytes. */
  readonly sent: [number, number][] = []
  now = false
  #waiting: (() => void)[] = []

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    const send = () => {
      for (const byte of chunk) count(this.sent, byte, 1)
      done()
    }
    if (this.now) send()
    else this.#waiting.push(send)
  }

  sendOne(): void {
    this.#waiting.shift()?.()
  }
}

test('no byte is overwritten before it has gone out, whatever waits and for how long', async () => {
  const step = fc.record({
    // In 256ths of the buffer that is read into: so it is full at times, and nearly empty at others.
    part: fc.oneof(fc.constant(256), fc.constant(1), fc.integer({ min: 1, max: 256 })),
    now: fc.boolean(),
    sends: fc.nat(2),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const tap = new Tap()
      const from = new Socket()
      const to = new Slow()
      tap.fit(from)
      tap.pour(to as unknown as Socket)
      const buffer = tap.onread.buffer as () => Uint8Array
      let current = buffer()
      const expected: [number, number][] = []
      for (const [i, { part, now, sends }] of steps.entries()) {
        to.now = now
        const length = Math.max(1, (current.length * part) >> 8)
        current.fill(i + 1, 0, length)
        count(expected, i + 1, length)
        const more = tap.onread.callback(length, current)
        current = buffer()
        for (let k = 0; k < (more ? sends : 100); k++) to.sendOne()
        await new Promise((resolve) => setImmediate(resolve))
      }
      to.now = true
      for (let k = 0; k < 100; k++) to.sendOne()
      await new Promise((resolve) => setImmediate(resolve))
      assert.deepEqual(to.sent, expected)
      from.destroy()
      to.destroy()
    }),
    { numRuns: 60 },
  )
})

function count(runs: [number, number][], value: number, times: number): void {
  const last = runs.at(-1)
  if (last?.[0] === value) last[1] += times
  else runs.push([value, times])
}

test('a tap that drops, or has nowhere to pour, takes and forgets', () => {
  const tap = new Tap()
  const from = new Socket()
  tap.fit(from)
  const buffer = (tap.onread.buffer as () => Uint8Array)()
  assert.equal(tap.onread.callback(10, buffer), true)
  const to = new Slow()
  tap.pour(to as unknown as Socket)
  tap.drop()
  assert.equal(tap.onread.callback(10, buffer), true)
  assert.equal(to.writableLength, 0)
  from.destroy()
  to.destroy()
})
