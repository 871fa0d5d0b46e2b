import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  afterFailure,
  type LiveOnion,
  ONION_LIMITS,
  type OnionHistory,
  type OnionPlanResult,
  type PlanInput,
  planOnions,
  type WantedOnion,
} from './onion-plan.ts'

const NOW = 10_000_000

function wanted(address: string, more: Partial<WantedOnion> = {}): WantedOnion {
  return { name: address, address, since: 0, shape: '80', usable: true, ...more }
}

function live(address: string, more: Partial<LiveOnion> = {}): LiveOnion {
  return { address, shape: '80', addedAt: NOW, published: false, ...more }
}

function published(address: string, more: Partial<LiveOnion> = {}): LiveOnion {
  return live(address, { published: true, lastUpload: NOW, ...more })
}

function plan(
  wants: WantedOnion[],
  lives: LiveOnion[] = [],
  more: Partial<PlanInput> & { past?: Record<string, OnionHistory> } = {},
): OnionPlanResult {
  const { past = {}, ...rest } = more
  return planOnions({
    wanted: wants,
    live: new Map(lives.map((onion) => [onion.address, onion])),
    history: new Map(Object.entries(past)),
    bootstrappedAt: 0,
    now: NOW,
    ...rest,
  })
}

const many = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => `o${String(i).padStart(3, '0')}`)
const added = (result: OnionPlanResult): string[] => result.steps.map(({ address }) => address)

test('an unchanged world needs no step', () => {
  const result = plan([wanted('a'), wanted('b')], [published('a'), published('b')])
  assert.deepEqual(result.steps, [])
  assert.equal(result.again, NOW + ONION_LIMITS.descriptorMs)
})

test('what is missing is added, what is not wanted is removed, nothing else is touched', () => {
  const result = plan([wanted('a'), wanted('b')], [published('b'), published('c')])
  assert.deepEqual(result.steps, [
    { do: 'remove', address: 'c' },
    { do: 'add', address: 'a' },
  ])
})

test('the ten oldest go first', () => {
  const wants = many(30).map((address, i) => wanted(address, { since: 100 - i }))
  assert.deepEqual(added(plan(wants)), many(30).reverse().slice(0, 10))
})

test('no more than ten unpublished are in flight; a published one frees its slot', () => {
  const wants = many(30).map((address) => wanted(address))
  const flying = many(10).map((address) => live(address))
  assert.deepEqual(added(plan(wants, flying)), [])
  assert.equal(plan(wants, flying).again, NOW + ONION_LIMITS.slotMs)
  const two = [...many(2).map((address) => published(address)), ...flying.slice(2)]
  assert.deepEqual(added(plan(wants, two)), ['o010', 'o011'])
})

test('a slot is free after a minute, but not while tor cannot upload', () => {
  const wants = many(30).map((address) => wanted(address))
  const flying = many(10).map((address) => live(address, { addedAt: NOW - ONION_LIMITS.slotMs }))
  assert.equal(plan(wants, flying).steps.length, 10)
  assert.deepEqual(plan(wants, flying, { bootstrappedAt: undefined }), { steps: [], again: undefined })
  assert.equal(plan(wants, flying, { bootstrappedAt: NOW - 1 }).steps.length, 0)
})

test('before the bootstrap ten are added', () => {
  assert.equal(
    plan(
      many(30).map((a) => wanted(a)),
      [],
      { bootstrappedAt: undefined },
    ).steps.length,
    10,
  )
})

test('an onion without a usable key is left alone, live or not', () => {
  assert.deepEqual(plan([wanted('a', { usable: false })]).steps, [])
  const changed = wanted('a', { usable: false, shape: '81' })
  assert.deepEqual(plan([changed], [published('a')]).steps, [])
})

test('other virtual ports replace, in any order they are the same', () => {
  const result = plan([wanted('a', { shape: '80 443' })], [published('a')])
  assert.deepEqual(result.steps, [{ do: 'replace', address: 'a', why: 'shape' }])
  const same = published('a', { shape: '80 443' })
  assert.deepEqual(plan([wanted('a', { shape: '80 443' })], [same]).steps, [])
})

test('a replaced onion waits for the window like any other, unless it holds a slot', () => {
  const wants = [...many(10), 'p'].map((address) => wanted(address, { shape: '81' }))
  const flying = many(10).map((address) => live(address, { shape: address === 'o003' ? '80' : '81' }))
  assert.deepEqual(added(plan(wants, [...flying, published('p')])), ['o003'])
})

test('an onion whose uploads nobody acknowledged for 90 s is lost', () => {
  const asked = (ago: number) => live('a', { addedAt: NOW - 100_000, unacknowledgedSince: NOW - ago })
  assert.deepEqual(plan([wanted('a')], [asked(89_999)]), { steps: [], again: NOW + 1 })
  assert.deepEqual(plan([wanted('a')], [asked(90_000)]).steps, [{ do: 'replace', address: 'a', why: 'lost' }])
})

test('a later wave of uploads that nobody acknowledged makes a published one lost', () => {
  const onion = published('a', { unacknowledgedSince: NOW - 90_000, lastUpload: NOW - 4_000_000 })
  assert.equal(plan([wanted('a')], [onion]).steps.length, 1)
})

test('an onion that tor never began to upload is lost after two minutes with the network', () => {
  const silent = live('a', { addedAt: NOW - 120_000 })
  assert.equal(plan([wanted('a')], [silent]).steps.length, 1)
  assert.equal(plan([wanted('a')], [silent], { bootstrappedAt: undefined }).steps.length, 0)
  assert.equal(plan([wanted('a')], [silent], { bootstrappedAt: NOW - 119_999 }).steps.length, 0)
})

test('a published onion is lost when its descriptor has expired', () => {
  const old = published('a', { lastUpload: NOW - ONION_LIMITS.descriptorMs, addedAt: 0 })
  assert.equal(plan([wanted('a')], [old], { bootstrappedAt: 0, now: NOW }).steps.length, 0)
  const later = NOW + ONION_LIMITS.descriptorMs
  assert.equal(plan([wanted('a')], [published('a')], { now: later }).steps.length, 1)
})

test('a lost one that was replaced already waits longer each time; its user does not', () => {
  const once = afterFailure(undefined, NOW, 'lost')
  const twice = afterFailure(once, NOW, 'lost')
  assert.equal(once.retryAt - NOW, 60_000)
  assert.equal(twice.retryAt - NOW, 120_000)
  const onion = live('a', { addedAt: NOW - 200_000 })
  assert.deepEqual(plan([wanted('a')], [onion], { past: { a: twice } }), { steps: [], again: twice.retryAt })
  assert.equal(plan([wanted('a')], [], { past: { a: twice } }).steps.length, 1)
  assert.equal(plan([wanted('a', { shape: '1' })], [onion], { past: { a: twice } }).steps.length, 1)
})

test('a refused one waits, and the others do not', () => {
  const past = { a: afterFailure(undefined, NOW, 'refused') }
  assert.deepEqual(plan([wanted('a'), wanted('b')], [], { past }), {
    steps: [{ do: 'add', address: 'b' }],
    again: NOW + ONION_LIMITS.refusedMinMs,
  })
  assert.deepEqual(plan([wanted('a', { shape: '1' })], [published('a')], { past }).steps, [])
  let history: OnionHistory | undefined
  for (let i = 0; i < 40; i += 1) history = afterFailure(history, NOW, 'refused')
  assert.equal(history!.retryAt - NOW, ONION_LIMITS.backoffMaxMs)
})

test('lost ones come after those that the user waits for', () => {
  const lost = live('a', { addedAt: NOW - 200_000 })
  const result = plan([wanted('a', { since: 1 }), wanted('b', { since: 2 })], [lost])
  assert.deepEqual(added(result), ['b', 'a'])
})

test('whatever the world: never over the window, never a step twice, never a step for what is as it should be', () => {
  const onion = fc.record({
    live: fc.constantFrom('no', 'flying', 'published', 'stale'),
    wanted: fc.boolean(),
    usable: fc.boolean(),
    changed: fc.boolean(),
    since: fc.integer({ min: 0, max: 5 }),
  })
  fc.assert(
    fc.property(fc.array(onion, { maxLength: 40 }), fc.boolean(), (world, up) => {
      const wants: WantedOnion[] = []
      const lives: LiveOnion[] = []
      world.forEach((one, i) => {
        const address = `o${i}`
        const shape = one.changed ? '81' : '80'
        if (one.wanted) wants.push(wanted(address, { shape, usable: one.usable, since: one.since }))
        if (one.live === 'flying') lives.push(live(address))
        if (one.live === 'published') lives.push(published(address))
        if (one.live === 'stale') lives.push(live(address, { addedAt: NOW - 61_000 }))
      })
      const { steps } = plan(wants, lives, up ? {} : { bootstrappedAt: undefined })
      assert.equal(new Set(added({ steps, again: undefined })).size, steps.length)
      const touched = new Map(steps.map((step) => [step.address, step.do]))
      const holds = (one: (typeof world)[number]) => one.live === 'flying' || (one.live === 'stale' && !up)
      let flying = 0
      world.forEach((one, i) => {
        const step = touched.get(`o${i}`)
        if (one.live !== 'no' && !one.wanted) assert.equal(step, 'remove')
        else if (one.live !== 'no' && !one.changed) assert.equal(step, undefined)
        if (one.wanted && (holds(one) || step !== undefined)) flying += 1
      })
      const before = world.filter((one) => one.wanted && holds(one)).length
      assert.ok(flying <= Math.max(before, ONION_LIMITS.window), `${flying} in flight`)
    }),
  )
})
