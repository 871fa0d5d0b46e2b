import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { curate } from './curation.ts'
import {
  type CurationState,
  EVICTED_LIMITS,
  emptyCurationState,
  readCurationState,
  writeCurationState,
} from './curation-state.ts'
import { parseLines } from './lines.ts'

const OBFS4 = ['obfs4']
const line = (n: number): string =>
  `obfs4 192.0.2.${n}:443 ${String(n).padStart(40, '0')} cert=${'a'.repeat(70)} iat-mode=0`
const { lines } = parseLines([1, 2, 3].map(line).join('\n'), OBFS4)
const FULL: CurationState = {
  version: 1,
  seed: lines.slice(0, 1),
  fetched: lines.slice(1),
  evicted: [
    { fingerprint: 'A'.repeat(40), at: 1 },
    { fingerprint: 'B'.repeat(40), at: 2 },
  ],
  fetch: {
    source: 'https://example.org/',
    last: 5,
    open: true,
    fruitless: 3,
    notBefore: 9,
    failure: { reason: 'CaptchaPage', message: 'asks for a captcha' },
  },
}

test('what is written is read again', () => {
  for (const state of [FULL, emptyCurationState()]) {
    const text = writeCurationState(state)
    assert.deepEqual(readCurationState(text, OBFS4), state)
    assert.equal(writeCurationState(readCurationState(text, OBFS4)), text)
  }
})

test('the order of bridges is no difference', () => {
  assert.equal(writeCurationState({ ...FULL, fetched: FULL.fetched.toReversed() }), writeCurationState(FULL))
})

test('bridges of a transport that is used no more are left out', () => {
  const { seed, fetched, fetch } = readCurationState(writeCurationState(FULL), ['webtunnel'])
  assert.deepEqual([seed, fetched, fetch.last], [[], [], 5])
})

test('what is none, of another version, or too large is as good as empty', () => {
  const other = JSON.stringify({ ...JSON.parse(writeCurationState(FULL)), version: 2 })
  const texts = [
    undefined,
    '',
    '{',
    'null',
    '[]',
    '7',
    '"x"',
    '{}',
    other,
    ' '.repeat(2 ** 21) + writeCurationState(FULL),
  ]
  for (const text of texts) assert.deepEqual(readCurationState(text, OBFS4), emptyCurationState())
})

test('a part that is none takes nothing from the others', () => {
  const read = readCurationState(
    JSON.stringify({
      version: 1,
      seed: 'x',
      fetched: [7, null, 'nonsense', line(1), { line: line(2) }, `${line(2)}\n${line(3)}`, 'y'.repeat(5000)],
      evicted: [null, { fingerprint: 'x', at: 1 }, { fingerprint: 'C'.repeat(40), at: -1 }, ...FULL.evicted],
      fetch: {
        source: 7,
        last: 'x',
        open: true,
        fruitless: 1e300,
        notBefore: 0.5,
        failure: { reason: 'no' },
      },
    }),
    OBFS4,
  )
  assert.deepEqual(
    read.fetched.map((one) => one.line),
    [1, 2, 3].map(line),
  )
  assert.deepEqual([read.seed, read.evicted, read.fetch], [[], FULL.evicted, { fruitless: 0 }])
})

test('of those that were taken out the newest are remembered', () => {
  const evicted = Array.from({ length: 999 }, (_, at) => ({ fingerprint: String(at).padStart(40, '0'), at }))
  const read = readCurationState(writeCurationState({ ...FULL, evicted }), OBFS4)
  assert.deepEqual(read.evicted, evicted.slice(-EVICTED_LIMITS.count))
})

test('whatever is kept: it is read without an error, and curation goes on from it', () => {
  const documents = fc.oneof(
    fc.string(),
    fc.json(),
    fc
      .record({ seed: fc.anything(), fetched: fc.anything(), evicted: fc.anything(), fetch: fc.object() })
      .map((one) =>
        JSON.stringify({ ...one, version: 1 }, (_, value) => (typeof value === 'bigint' ? 1 : value)),
      ),
  )
  fc.assert(
    fc.property(documents, (text) => {
      const state = readCurationState(text, OBFS4)
      assert.deepEqual(readCurationState(writeCurationState(state), OBFS4), state)
      const given = { seed: lines, state, health: [], minHealthy: 2, maxBridges: 6, evictGraceSeconds: 1 }
      assert.equal(curate(given, 10).lines.length, 3)
    }),
  )
})
