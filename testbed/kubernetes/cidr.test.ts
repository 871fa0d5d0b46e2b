import assert from 'node:assert/strict'
import { test } from 'node:test'
import { overlaps, prefixLength } from './cidr.ts'

test('ranges overlap when one holds the other', () => {
  for (const [one, other] of [
    ['10.244.1.0/24', '10.244.0.0/16'],
    ['10.244.1.0/24', '10.244.1.255'],
    ['255.255.255.0/24', '128.0.0.0/1'],
    ['10.0.0.1', '0.0.0.0/0'],
  ] as const) {
    assert.equal(overlaps(one, other), true, `${one} and ${other}`)
    assert.equal(overlaps(other, one), true, `${other} and ${one}`)
  }
  assert.equal(overlaps('10.244.1.0/24', '10.244.2.0/24'), false)
  assert.equal(overlaps('10.244.1.0/24', '10.244.2.0'), false)
  assert.equal(overlaps('0.0.0.0/1', '128.0.0.0/1'), false)
  assert.equal(prefixLength('10.0.0.0/8'), 8)
  assert.equal(prefixLength('10.0.0.1'), 32)
})
