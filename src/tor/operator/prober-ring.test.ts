import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { splitKey } from '../../core/resource.ts'
import { assign } from './prober-ring.ts'

const namespaceOf = (key: string): string => splitKey(key).namespace
const all = (): boolean => true

test('nobody looks where all daemons are of one namespace, or none can', () => {
  assert.equal(assign(['a/tor', 'a/other'], all).prober.size, 0)
  assert.equal(assign(['a/tor', 'b/tor'], () => false).prober.size, 0)
  assert.equal(assign([], all).prober.size, 0)
})

test('two namespaces look at each other, and one that cannot look is looked at all the same', () => {
  assert.deepEqual([...assign(['a/tor', 'b/tor'], all).prober].sort(), [
    ['a/tor', 'b/tor'],
    ['b/tor', 'a/tor'],
  ])
  const { prober, watched } = assign(['a/tor', 'b/tor'], (key) => key === 'b/tor')
  assert.deepEqual([...prober], [['a/tor', 'b/tor']])
  assert.deepEqual([...watched], [['b/tor', ['a/tor']]])
})

const key = fc
  .tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e'), fc.constantFrom('tor', 'x', 'y', 'z'))
  .map(([namespace, name]) => `${namespace}/${name}`)
const world = fc.record({
  daemons: fc.uniqueArray(key, { maxLength: 16 }),
  unable: fc.uniqueArray(key, { maxLength: 8 }),
})

test('each is looked at by an able one of another namespace, if there is one', () => {
  fc.assert(
    fc.property(world, ({ daemons, unable }) => {
      const able = daemons.filter((one) => !unable.includes(one))
      const { prober, watched } = assign(daemons, (one) => able.includes(one))
      for (const one of daemons) {
        const by = prober.get(one)
        const possible = able.filter((other) => namespaceOf(other) !== namespaceOf(one))
        if (possible.length === 0) assert.equal(by, undefined)
        else assert.ok(by !== undefined && possible.includes(by), `${one} by ${by}`)
        if (by !== undefined) assert.ok(watched.get(by)?.includes(one))
      }
      assert.equal([...watched.values()].flat().length, prober.size)
    }),
  )
})

test('the order in which they are told is nothing, and one that comes moves none but to itself', () => {
  fc.assert(
    fc.property(world, key, ({ daemons, unable }, comer) => {
      const able = (one: string): boolean => !unable.includes(one)
      const before = assign(daemons, able).prober
      assert.deepEqual(
        new Map([...assign(daemons.toReversed(), able).prober].sort()),
        new Map([...before].sort()),
      )
      if (daemons.includes(comer)) return
      const after = assign([...daemons, comer], able).prober
      for (const one of daemons) {
        if (after.get(one) !== before.get(one)) assert.equal(after.get(one), comer)
      }
    }),
  )
})

test('where namespaces are many, nobody looks at very many', () => {
  const daemons = Array.from({ length: 2_000 }, (_, index) => `ns-${index}/tor`)
  const { prober, watched } = assign(daemons, all)
  assert.equal(prober.size, 2_000)
  assert.equal(Math.max(...[...watched.values()].map(({ length }) => length)), 1)
})
