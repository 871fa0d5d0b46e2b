import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OnionState } from '../contract.ts'
import { FirstPublication } from './first-publication.ts'

function onions(states: Record<string, OnionState['state']>): OnionState[] {
  return Object.entries(states).map(([name, state]) => ({
    name,
    address: `${name}-address`,
    state,
    uploadsAsked: 0,
    uploadsAcknowledged: 0,
    connections: 0,
  }))
}

/** One look, and what it says then. */
function ask(
  first: FirstPublication,
  states: Record<string, OnionState['state']>,
  now: number,
  bootstrapped = true,
): string | undefined {
  const all = onions(states)
  first.look(bootstrapped, all, now)
  return first.pending(all, now)
}

test('waits for what is there at the first bootstrap, and for nothing that comes later', () => {
  const first = new FirstPublication()
  assert.equal(ask(first, { a: 'waiting' }, 0, false), undefined)
  assert.match(ask(first, { a: 'added', b: 'waiting' }, 1) ?? '', /: a, b$/)
  assert.match(ask(first, { a: 'published', b: 'added', c: 'waiting' }, 2) ?? '', /: b$/)
  // tor died and all begins anew: a was published once, and b still has to be.
  assert.match(ask(first, { a: 'waiting', b: 'waiting', c: 'waiting' }, 3, false) ?? '', /: b$/)
  assert.equal(ask(first, { a: 'waiting', b: 'published', c: 'waiting' }, 4), undefined)
  assert.equal(ask(first, { a: 'waiting', b: 'waiting', c: 'waiting', d: 'added' }, 5), undefined)
})

test('an onion that failed or is gone is not waited for', () => {
  const first = new FirstPublication()
  assert.match(ask(first, { a: 'added', b: 'failed', c: 'added' }, 0) ?? '', /: a, c$/)
  assert.equal(ask(first, { a: 'published', b: 'failed' }, 1), undefined)
})

test('nothing to publish: nothing to wait for, then and later', () => {
  const first = new FirstPublication()
  assert.equal(ask(first, {}, 0), undefined)
  assert.equal(ask(first, { a: 'added' }, 1), undefined)
})

test('after two minutes it is ready all the same, and stays so', () => {
  const first = new FirstPublication()
  ask(first, { a: 'added' }, 1_000)
  assert.match(ask(first, { a: 'added' }, 121_000) ?? '', /: a$/)
  assert.equal(ask(first, { a: 'added' }, 121_001), undefined)
  assert.equal(ask(first, { a: 'added' }, 5_000), undefined)
})

test('of many it names five', () => {
  const states = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`o${i}`, 'added' as const]))
  assert.match(ask(new FirstPublication(), states, 0) ?? '', /: o0, o1, o2, o3, o4 and 3 more$/)
})
