import assert from 'node:assert/strict'
import { test } from 'node:test'
import { age, humanDuration } from './age.ts'

test('durations read as kubectl prints them', () => {
  const second = 1000
  const minute = 60 * second
  const hour = 60 * minute
  const day = 24 * hour
  const cases: [number, string][] = [
    [-5 * second, '<invalid>'],
    [-1 * second, '0s'],
    [0, '0s'],
    [119 * second, '119s'],
    [2 * minute, '2m'],
    [5 * minute + 30 * second, '5m30s'],
    [10 * minute + 30 * second, '10m'],
    [179 * minute, '179m'],
    [3 * hour, '3h'],
    [3 * hour + 10 * minute, '3h10m'],
    [9 * hour + 10 * minute, '9h'],
    [2 * day, '2d'],
    [5 * day + 3 * hour, '5d3h'],
    [9 * day, '9d'],
    [729 * day, '729d'],
    [731 * day, '2y1d'],
    [9 * 365 * day, '9y'],
  ]
  for (const [milliseconds, text] of cases) assert.equal(humanDuration(milliseconds), text)
})

test('an age is counted from a timestamp, and unknown without one', () => {
  const now = Date.parse('2026-01-01T00:02:00Z')
  assert.equal(age('2026-01-01T00:00:00Z', now), '2m')
  assert.equal(age(undefined, now), '<unknown>')
  assert.equal(age('soon', now), '<unknown>')
})
