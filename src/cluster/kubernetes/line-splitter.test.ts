import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LineSplitter } from './line-splitter.ts'

test('however a text is cut, its lines come out whole', () => {
  const line = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\n', ''))
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.nat({ max: 9 })), (lines, sizes) => {
      const bytes = Buffer.from(lines.map((one) => `${one}\n`).join(''))
      const splitter = new LineSplitter(bytes.length)
      const found: string[] = []
      for (let start = 0, turn = 0; start < bytes.length; turn++) {
        const end = start + 1 + (sizes[turn % Math.max(1, sizes.length)] ?? 0)
        found.push(...splitter.push(bytes.subarray(start, end)))
        start = end
      }
      assert.deepEqual(
        found,
        lines.map((one) => Buffer.from(one).toString('utf8')),
      )
      assert.equal(splitter.pending, 0)
    }),
  )
})

test('a line may be as long as the limit and no longer, in one chunk or in many', () => {
  const whole = new LineSplitter(4)
  assert.deepEqual([...whole.push(Buffer.from('abcd\nef'))], ['abcd'])
  assert.equal(whole.pending, 2)
  assert.throws(() => [...new LineSplitter(4).push(Buffer.from('abcde\n'))], RangeError)
  const parts = new LineSplitter(4)
  assert.deepEqual([...parts.push(Buffer.from('abc'))], [])
  assert.throws(() => [...parts.push(Buffer.from('de'))], RangeError)
})
