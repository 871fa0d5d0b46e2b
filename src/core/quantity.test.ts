import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseQuantity } from './quantity.ts'

test('quantities in base units', () => {
  assert.equal(parseQuantity('128Mi'), 128 * 1024 * 1024)
  assert.equal(parseQuantity('1.5G'), 1.5e9)
  assert.equal(parseQuantity('250m'), 0.25)
  assert.equal(parseQuantity('17'), 17)
  for (const bad of ['', 'Mi', '1 Mi', '-1', '1e3', '12Q']) assert.equal(parseQuantity(bad), undefined, bad)
})
