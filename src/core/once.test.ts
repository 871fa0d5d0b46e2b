import assert from 'node:assert/strict'
import { test } from 'node:test'
import { once } from './once.ts'

test('works out once an object, also where nothing comes of it', () => {
  let calls = 0
  const value = once((object: { value?: number }) => {
    calls++
    return object.value
  })
  const [one, none] = [{ value: 1 }, {}]
  assert.deepEqual([value(one), value(one), value(none), value(none)], [1, 1, undefined, undefined])
  assert.equal(calls, 2)
  assert.equal(value({ value: 1 }), 1)
  assert.equal(calls, 3)
})
