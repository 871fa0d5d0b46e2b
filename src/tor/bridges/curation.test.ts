import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { BridgeHealth, BridgeState } from '../contract.ts'
import { type Curation, type CurationInput, curate } from './curation.ts'
import { EVICTED_LIMITS, emptyCurationState, writeCurationState } from './curation-state.ts'
import { type BridgeLine, parseLines } from './lines.ts'
import { FETCH_PACE, type FetchResult } from './pacing.ts'

const CERT = 'a'.repeat(70)
const NOW = 1_800_000_000_000
const HOUR = 3_600_000
const SOURCE = 'https://bridges.example.org/'
const fingerprint = (n: number): string => n.toString(16).toUpperCase().padStart(40, '0')
const bridges = (...numbers: number[]): BridgeLine[] =>
  parseLines(
    numbers.map((n) => `obfs4 192.0.2.${n}:443 ${fingerprint(n)} cert=${CERT} iat-mode=0`).join('\n'),
    ['obfs4'],
  ).lines
const is = (state: BridgeHealth, ago: number, ...numbers: number[]): BridgeState[] =>
  numbers.map((n) => ({ fingerprint: fingerprint(n), state, since: NOW - ago }))
const numbers = (fingerprints: readonly { fingerprint: string }[] | readonly string[]): number[] =>
  fingerprints.map((one) => Number.parseInt(typeof one === 'string' ? one : one.fingerprint, 16))

function input(more: Partial<CurationInput> & { fetched?: BridgeLine[] }): CurationInput {
  const { fetched = [], ...rest } = more
  return {
    seed: [],
    state: { ...emptyCurationState(), fetched, fetch: { source: SOURCE, fruitless: 0 } },
    health: [],
    minHealthy: 2,
    maxBridges: 6,
    evictGraceSeconds: 3600,
    source: SOURCE,
    ...rest,
  }
}
const set = ({ lines }: Curation): number[] => numbers(lines)
/** The next look, with what the last one left. */
const then = (before: CurationInput, last: Curation, more: Partial<CurationInput> = {}): CurationInput => ({
  ...before,
  state: last.state,
  ...more,
})

const evictions: [name: string, health: BridgeState[], gone: number[], again?: number][] = [
  ['nothing is known', [], []],
  ['all are healthy', is('healthy', HOUR, 1, 2, 3, 4), []],
  ['spares idle', [...is('healthy', HOUR, 1), ...is('unknown', 9 * HOUR, 2, 3, 4)], []],
  ['one is dead for longer than the grace', [...is('healthy', 0, 1), ...is('dead', HOUR + 1, 3)], [3]],
  ['one is dead for just the grace', [...is('healthy', 0, 1), ...is('dead', HOUR, 3)], [], 1],
  ['one is dead for less', [...is('healthy', 0, 1), ...is('dead', HOUR - 5000, 3)], [], 5001],
  ['its clock is ahead', [...is('healthy', 0, 1), ...is('dead', -HOUR, 3)], [], 2 * HOUR + 1],
  ['a spare is the healthy one', [...is('healthy', 0, 4), ...is('dead', 9 * HOUR, 1, 2, 3)], [3]],
  ['only one of the seed is dead', [...is('healthy', 0, 4), ...is('dead', 9 * HOUR, 1)], []],
  ['nothing is healthy: it is our own network', is('dead', 99 * HOUR, 1, 2, 3, 4), []],
  ['nothing is healthy, one is unknown', [...is('dead', 99 * HOUR, 2, 3, 4), ...is('unknown', 0, 1)], []],
  [
    'only one that is in the set no more is healthy',
    [...is('dead', 99 * HOUR, 1, 2, 3, 4), ...is('healthy', 0, 9)],
    [],
  ],
]
for (const [name, health, gone, again] of evictions) {
  test(`eviction when ${name}`, () => {
    const given = input({ seed: bridges(1, 2), fetched: bridges(3, 4), health })
    const { source: _, ...offline } = given
    const result = curate(offline, NOW)
    assert.deepEqual(numbers(result.evicted), gone)
    assert.deepEqual(
      set(result),
      [1, 2, 3, 4].filter((n) => !gone.includes(n)),
    )
    assert.deepEqual(numbers(result.state.evicted), gone)
    assert.deepEqual(result.displaced, [])
    assert.equal(result.again, again)
  })
}

test('fewer than minHealthy that are not dead: a fetch, which fills up to maxBridges', () => {
  const before = input({ seed: bridges(1), health: is('healthy', 0, 1) })
  const wish = curate(before, NOW)
  assert.deepEqual([wish.need, wish.fetch], ['fetch', { source: SOURCE, asked: NOW }])
  assert.deepEqual([set(wish), wish.state.fetch.last], [[1], NOW])

  // While it runs, and after a restart in which it was lost: not again before its time.
  const meanwhile = curate(then(before, wish), NOW + 1)
  assert.deepEqual(
    [meanwhile.need, meanwhile.fetch, meanwhile.again],
    ['wait', undefined, 2 * FETCH_PACE.first - 1],
  )

  const outcome: FetchResult = { asked: NOW, bridges: bridges(9, 8, 7, 6, 5, 4, 1) }
  const filled = curate(then(before, wish, { outcome }), NOW + 2)
  assert.deepEqual(
    [set(filled), numbers(filled.added)],
    [
      [1, 4, 5, 6, 7, 8],
      [4, 5, 6, 7, 8],
    ],
  )
  assert.deepEqual(
    [filled.need, filled.again, filled.state.fetch],
    ['none', undefined, { source: SOURCE, last: NOW, fruitless: 0 }],
  )

  const same = curate(then(before, filled, { outcome }), NOW + 3)
  assert.deepEqual(
    [same.text, same.added, writeCurationState(same.state)],
    [filled.text, [], writeCurationState(filled.state)],
  )
})

test('dead ones in their grace do not count as bridges that one has', () => {
  const health = [...is('healthy', 0, 1), ...is('dead', 0, 2, 3)]
  assert.equal(curate(input({ seed: bridges(1, 2), fetched: bridges(3), health }), NOW).need, 'fetch')
  assert.equal(curate(input({ seed: bridges(1, 2), fetched: bridges(3, 4), health }), NOW).need, 'none')
})

test('nothing to fetch from, and no place for what would be fetched', () => {
  const { source: _, ...offline } = input({ seed: bridges(1) })
  assert.deepEqual([curate(offline, NOW).need, curate(offline, NOW).again], ['noSource', undefined])
  const full = curate(
    input({ seed: bridges(1), fetched: bridges(2), maxBridges: 2, health: is('dead', 9 * HOUR, 1, 2) }),
    NOW,
  )
  assert.deepEqual([full.need, full.fetch, set(full)], ['full', undefined, [1, 2]])
})

test('who was taken out does not come straight back, and may after a time', () => {
  const health = [...is('healthy', 0, 1), ...is('dead', 2 * HOUR, 2)]
  const before = input({ seed: bridges(1), fetched: bridges(2), health })
  const gone = curate(before, NOW)
  assert.deepEqual([numbers(gone.evicted), gone.need], [[2], 'fetch'])
  const offer = (asked: number): FetchResult => ({ asked, bridges: bridges(2) })
  const again = curate(then(before, gone, { outcome: offer(NOW) }), NOW + 1)
  assert.deepEqual([set(again), again.added, again.state.fetch.fruitless], [[1], [], 1])

  const later = NOW + EVICTED_LIMITS.milliseconds
  const wish = curate(then(before, again), later)
  assert.deepEqual([wish.need, wish.state.evicted], ['fetch', []])
  assert.deepEqual(set(curate(then(before, wish, { outcome: offer(later) }), later + 1)), [1, 2])
})

test('each fetch that brings nothing is followed by a longer wait, also over restarts', () => {
  let now = NOW
  let last = curate(input({}), now)
  const waits: number[] = []
  const failure = { reason: 'CaptchaPage', message: 'asks for a captcha', reached: true }
  for (let n = 0; n < 9; n++) {
    last = curate(then(input({}), last, { outcome: { asked: now, failure } }), now + 5)
    assert.deepEqual([last.need, last.lines, last.state.fetch.failure?.reason], ['wait', [], 'CaptchaPage'])
    const due = now + 5 + last.again!
    assert.equal(curate(then(input({}), last), due - 1).need, 'wait')
    waits.push((due - now) / 60_000)
    now = due
    last = curate(then(input({}), last), now)
    assert.equal(last.need, 'fetch')
  }
  assert.deepEqual(waits, [20, 40, 80, 160, 320, 640, 720, 720, 720])

  const gain = curate(then(input({}), last, { outcome: { asked: now, bridges: bridges(1) } }), now + 5)
  assert.deepEqual([set(gain), gain.need, gain.again], [[1], 'wait', FETCH_PACE.first - 5])
  assert.equal(gain.state.fetch.failure, undefined)
})

test('a fetch that fails takes nothing away', () => {
  const before = input({ seed: bridges(1), fetched: bridges(2), health: is('dead', HOUR / 2, 1, 2) })
  const wish = curate(before, NOW)
  const failure = { reason: 'CaptchaPage', message: 'asks for a captcha', reached: true }
  const after = curate(then(before, wish, { outcome: { asked: NOW, failure } }), NOW + 5)
  assert.deepEqual(
    [wish.need, after.need, after.state.fetch.failure?.reason],
    ['fetch', 'wait', 'CaptchaPage'],
  )
  assert.deepEqual([set(after), after.evicted, after.displaced], [[1, 2], [], []])
})

test('where nothing answers the waits stay short; who asks for patience gets it', () => {
  let now = NOW
  let last = curate(input({}), now)
  for (let n = 0; n < 9; n++) {
    const failure = { reason: 'FetchRefused', message: 'refuses', reached: false }
    last = curate(then(input({}), last, { outcome: { asked: now, failure } }), now)
    assert.ok(last.again! <= FETCH_PACE.unreached, `${n}: ${last.again}`)
    now += last.again!
    last = curate(then(input({}), last), now)
  }
  const failure = { reason: 'HttpStatus', message: '429', reached: true, wait: 5 * HOUR }
  const first = curate(input({}), NOW)
  const patient = curate(then(input({}), first, { outcome: { asked: NOW, failure } }), NOW + 5)
  assert.equal(patient.again, 5 * HOUR)
  const twice = curate(then(input({}), patient, { outcome: { asked: NOW, failure } }), NOW + HOUR)
  assert.deepEqual([twice.again, twice.state], [4 * HOUR + 5, patient.state])
  assert.equal(
    curate(
      then(input({}), first, { outcome: { asked: NOW, failure: { ...failure, wait: 999 * HOUR } } }),
      NOW,
    ).again,
    FETCH_PACE.most,
  )
})

test('another source is asked at once; a clock that was set back costs one wait', () => {
  const first = curate(input({}), NOW)
  const other = curate(then(input({}), first, { source: 'https://other.example.org/' }), NOW + 1)
  assert.equal(other.fetch?.source, 'https://other.example.org/')
  const back = curate(then(input({}), first), NOW - 9999 * HOUR)
  assert.deepEqual([back.need, back.again], ['wait', 2 * FETCH_PACE.first])
})

test('an outcome of another wish is not taken in', () => {
  const first = curate(input({}), NOW)
  const late = curate(then(input({}), first, { outcome: { asked: NOW - 1, bridges: bridges(1) } }), NOW + 1)
  assert.deepEqual([set(late), late.state.fetch.open], [[], true])
})

test('a bridge that leaves the seed leaves the set, unless it came from the source too', () => {
  const before = input({ seed: bridges(1, 2), minHealthy: 3 })
  const wish = curate(before, NOW)
  const outcome: FetchResult = { asked: NOW, bridges: bridges(2, 3) }
  const both = curate(then(before, wish, { outcome }), NOW + 1)
  assert.deepEqual([set(both), numbers(both.added)], [[1, 2, 3], [3]])
  const less = curate(then(before, both, { seed: [] }), NOW + 2)
  assert.deepEqual(
    less.bridges.map((one) => [numbers([one])[0], one.seed]),
    [
      [2, false],
      [3, false],
    ],
  )
})

test('a seed that cannot be read stays as it was known; an empty one is empty', () => {
  const first = curate(input({ seed: bridges(1, 2) }), NOW)
  const lost = curate(then(input({}), first, { seed: undefined }), NOW + 1)
  assert.deepEqual([lost.text, writeCurationState(lost.state)], [first.text, writeCurationState(first.state)])
  assert.deepEqual(set(curate(then(input({}), lost, { seed: [] }), NOW + 2)), [])
})

test('a seed beyond maxBridges stays whole; of fetched ones the best stay', () => {
  assert.equal(curate(input({ seed: bridges(1, 2, 3, 4, 5, 6, 7, 8) }), NOW).lines.length, 8)
  const health = [...is('dead', 5, 3), ...is('dead', 9, 4), ...is('healthy', 5, 5), ...is('healthy', 9, 6)]
  const fetched = bridges(3, 4, 5, 6, 7)
  const left = [1, 2, 3, 4, 5].map((maxBridges) => {
    const result = curate(input({ fetched, health, maxBridges, minHealthy: 1 }), NOW)
    assert.deepEqual([result.evicted, result.state.evicted], [[], []])
    assert.deepEqual([...set(result), ...numbers(result.displaced)].sort(), [3, 4, 5, 6, 7])
    return set(result)
  })
  assert.deepEqual(left, [[6], [5, 6], [5, 6, 7], [3, 5, 6, 7], [3, 4, 5, 6, 7]])
})

const someBridges = fc.uniqueArray(fc.integer({ min: 1, max: 20 }), { maxLength: 12 })
const someHealth = fc.array(
  fc.record({
    n: fc.integer({ min: 1, max: 20 }),
    state: fc.constantFrom<BridgeHealth>('healthy', 'dead', 'unknown'),
    ago: fc.integer({ min: -HOUR, max: 3 * HOUR }),
  }),
  { maxLength: 20 },
)
const step = fc.record({
  seed: fc.option(someBridges, { nil: undefined }),
  health: someHealth,
  maxBridges: fc.integer({ min: 1, max: 8 }),
  minHealthy: fc.integer({ min: 1, max: 8 }),
  offered: fc.option(someBridges, { nil: undefined }),
  passes: fc.integer({ min: 0, max: HOUR }),
})

test('whatever happens, in whichever order: the rules hold at every step', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => {
      let now = NOW
      let state = emptyCurationState()
      for (const { seed, health, maxBridges, minHealthy, offered, passes } of steps) {
        now += passes
        const asked = state.fetch.last ?? 0
        const outcome: FetchResult =
          offered === undefined
            ? { asked, failure: { reason: 'CaptchaPage', message: '', reached: true } }
            : { asked, bridges: bridges(...offered) }
        const given = input({
          seed: seed === undefined ? undefined : bridges(...seed),
          state,
          health: health.flatMap(({ n, state: one, ago }) => is(one, ago, n)),
          maxBridges,
          minHealthy,
          outcome,
        })
        const result = curate(given, now)
        const inSet = new Set(set(result))
        const own = numbers(given.seed ?? state.seed)
        assert.ok(
          own.every((n) => inSet.has(n)),
          'the seed is always in',
        )
        assert.ok(inSet.size <= Math.max(own.length, maxBridges), 'never too many')
        assert.equal(inSet.size, result.lines.length)
        const was = new Set([...own, ...numbers(state.fetched)])
        const known = new Map(given.health.map((one) => [numbers([one])[0]!, one]))
        const alive = [...was].some((n) => known.get(n)?.state === 'healthy')
        for (const n of numbers(result.evicted)) {
          assert.ok(alive && !own.includes(n) && known.get(n)?.state === 'dead')
          assert.ok(now - known.get(n)!.since > HOUR && !inSet.has(n))
        }
        for (const n of numbers(result.added)) {
          assert.ok(offered?.includes(n) && !state.evicted.some((one) => numbers([one])[0] === n))
        }
        const gone = numbers(state.fetched).filter((n) => !inSet.has(n))
        const told = [...numbers(result.evicted), ...numbers(result.displaced)]
        assert.ok(
          gone.every((n) => told.includes(n)),
          'nobody goes untold',
        )
        const from = state.fetch.last
        if (result.fetch !== undefined && from !== undefined && from <= now) {
          assert.ok(now - from >= FETCH_PACE.first, 'never too soon')
        }
        assert.ok(result.again === undefined || result.again > 0)
        // The same once more, where nothing is known of new ones yet: no difference, and no second fetch.
        const heard = given.health.filter((one) => !result.added.includes(one.fingerprint))
        const again = curate({ ...given, state: result.state, health: heard }, now)
        assert.equal(again.text, result.text)
        assert.equal(writeCurationState(again.state), writeCurationState(result.state))
        assert.deepEqual([again.fetch, again.added, again.evicted], [undefined, [], []])
        state = result.state
      }
    }),
    { numRuns: 300 },
  )
})
