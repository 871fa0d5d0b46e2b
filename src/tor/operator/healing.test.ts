import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  DAEMON_NOT_HEALED,
  type DaemonHealing,
  HEALING_LIMITS,
  heal,
  NOT_HEALED,
  type OnionHealing,
  type Patient,
} from './healing.ts'

const NOW = Date.parse('2026-01-02T12:00:00Z')
const MINUTE = 60_000
const HOUR = 60 * MINUTE

function ill(name: string, healing: Partial<OnionHealing> = {}, failures = 2): Patient {
  return { name, state: 'ill', failures, healing: { ...NOT_HEALED, ...healing } }
}
const well = (name: string, healing: Partial<OnionHealing> = {}): Patient => ({
  name,
  state: 'well',
  failures: 0,
  healing: { ...NOT_HEALED, ...healing },
})
/** After so many steps, the last one so long ago; enough looks have failed since. */
const after = (attempts: number, ago: number): Partial<OnionHealing> => ({
  attempts,
  renewal: attempts,
  failures: 2,
  lastAttempt: NOW - ago,
  republished: [NOW - ago],
})

const steps = (patients: Patient[], daemon: Partial<DaemonHealing> = {}): string[] =>
  heal(patients, { ...DAEMON_NOT_HEALED, ...daemon }, NOW).steps.map(({ onion, step }) => `${onion} ${step}`)

const rows: [what: string, patients: Patient[], expected: string[], daemon?: Partial<DaemonHealing>][] = [
  ['one failure is none', [ill('a', {}, 1)], []],
  ['certain: it is published anew', [ill('a')], ['a Republish']],
  ['reachable: nothing', [well('a')], []],
  ['not certain: nothing', [{ ...ill('a'), state: 'unknown' }], []],
  ['the pause is not over', [ill('a', after(1, 4 * MINUTE), 4)], []],
  ['the pause is over, and nothing was seen since', [ill('a', after(1, 5 * MINUTE), 3)], []],
  ['it did not help', [ill('a', after(1, 5 * MINUTE), 4)], ['a FreshCircuits']],
  [
    'reached in between: looks count anew',
    [ill('a', { ...after(1, 5 * MINUTE), failures: 40 }, 2)],
    ['a FreshCircuits'],
  ],
  ['the second pause is twice as long', [ill('a', after(2, 9 * MINUTE), 4)], []],
  ['all are away: tor is started anew', [ill('a', after(2, 10 * MINUTE), 4)], ['a Restart']],
  ['half of them are not most', [ill('a', after(2, 10 * MINUTE), 4), well('b')], []],
  [
    'most are away',
    [ill('a', after(2, 10 * MINUTE), 4), ill('b', after(1, MINUTE)), well('c')],
    ['a Restart'],
  ],
  [
    'those of which nothing is certain are none that are away',
    [ill('a', after(2, 10 * MINUTE), 4), { ...ill('b'), state: 'unknown' }],
    [],
  ],
  ['started anew lately', [ill('a', after(2, HOUR), 4)], [], { lastRestart: NOW - 6 * HOUR + 1 }],
  ['not lately', [ill('a', after(2, HOUR), 4)], ['a Restart'], { lastRestart: NOW - 6 * HOUR }],
  ['everything was tried', [ill('a', after(3, 20 * HOUR), 99)], []],
  [
    'four times a day are enough',
    [ill('a', { republished: [1, 2, 3, 4].map((hours) => NOW - hours * HOUR) })],
    [],
  ],
  [
    'the day is over',
    [ill('a', { republished: [1, 2, 3, 24].map((hours) => NOW - hours * HOUR) })],
    ['a Republish'],
  ],
  ['a clock that was set back', [ill('a', after(1, -5 * HOUR), 4)], ['a FreshCircuits']],
]
for (const [what, patients, expected, daemon] of rows) {
  test(what, () => assert.deepEqual(steps(patients, daemon), expected))
}

test('a step is remembered with all that bounds the next one', () => {
  const { onions, daemon } = heal([ill('a', { renewal: 7 }, 3)], DAEMON_NOT_HEALED, NOW)
  assert.deepEqual(onions.get('a'), {
    renewal: 8,
    attempts: 1,
    failures: 3,
    lastAttempt: NOW,
    republished: [NOW],
  })
  assert.equal(daemon, undefined)
})

test('new circuits are asked for once, for however many onions; a restart is no publication', () => {
  const two = heal(
    ['a', 'b'].map((name) => ill(name, after(1, HOUR), 4)),
    DAEMON_NOT_HEALED,
    NOW,
  )
  assert.deepEqual(two.daemon, { restarts: 0, freshCircuits: 1 })
  const three = heal(
    ['a', 'b'].map((name) => ill(name, after(2, HOUR), 4)),
    DAEMON_NOT_HEALED,
    NOW,
  )
  assert.deepEqual(three.daemon, { restarts: 1, freshCircuits: 0, lastRestart: NOW })
  assert.deepEqual(three.onions.get('b'), {
    ...NOT_HEALED,
    ...after(2, HOUR),
    attempts: 3,
    failures: 4,
    lastAttempt: NOW,
  })
})

test('once it is reached, the ladder begins anew, and the budget does not', () => {
  const { onions } = heal([well('a', after(2, MINUTE))], DAEMON_NOT_HEALED, NOW)
  assert.deepEqual(onions.get('a'), { ...NOT_HEALED, ...after(2, MINUTE), attempts: 0, failures: 0 })
  assert.equal(heal([well('a', { ...after(2, MINUTE), attempts: 0 })], DAEMON_NOT_HEALED, NOW).onions.size, 0)
})

test('it says when time alone will change the outcome', () => {
  assert.equal(heal([ill('a', after(1, 4 * MINUTE), 4)], DAEMON_NOT_HEALED, NOW).again, MINUTE)
  const spent = { republished: [NOW - HOUR, NOW - 23 * HOUR, NOW, NOW] }
  assert.equal(heal([ill('a', spent)], DAEMON_NOT_HEALED, NOW).again, HOUR)
  const daemon = { ...DAEMON_NOT_HEALED, lastRestart: NOW - 5 * HOUR }
  assert.equal(heal([ill('a', after(2, HOUR), 4)], daemon, NOW).again, HOUR)
  assert.equal(heal([well('a')], DAEMON_NOT_HEALED, NOW).again, undefined)
})

/** A daemon's life: minutes pass, onions are seen in one way or the other, and what is remembered is kept. */
const life = fc.array(
  fc.record({
    minutes: fc.integer({ min: 0, max: 90 }),
    seen: fc.array(fc.constantFrom('well', 'ill', 'ill', 'ill', 'unknown' as const), {
      minLength: 3,
      maxLength: 3,
    }),
  }),
  { maxLength: 300 },
)

test('whatever is seen: budgets hold, numbers only grow, and the same look again takes no second step', () => {
  fc.assert(
    fc.property(life, (turns) => {
      let now = NOW
      let daemon: DaemonHealing = DAEMON_NOT_HEALED
      const names = ['a', 'b', 'c']
      const memory = new Map(names.map((name) => [name, NOT_HEALED]))
      const failures = new Map(names.map((name) => [name, 0]))
      const republished = new Map(names.map((name) => [name, [] as number[]]))
      const restarts: number[] = []
      for (const { minutes, seen } of turns) {
        now += minutes * MINUTE
        const patients = names.map((name, index): Patient => {
          const state = seen[index] as Patient['state']
          failures.set(
            name,
            state === 'ill' ? failures.get(name)! + 1 : state === 'well' ? 0 : failures.get(name)!,
          )
          return { name, state, failures: failures.get(name)!, healing: memory.get(name)! }
        })
        const result = heal(patients, daemon, now)
        const restarted = result.steps.some(({ step }) => step === 'Restart')
        for (const { onion, step } of result.steps) {
          assert.equal(seen[names.indexOf(onion)], 'ill')
          assert.ok(failures.get(onion)! >= HEALING_LIMITS.freshFailures)
          if (step !== 'Restart') republished.get(onion)!.push(now)
        }
        if (restarted) restarts.push(now)
        for (const [name, next] of result.onions) {
          const before = memory.get(name)!
          const anew = result.steps.some(({ onion, step }) => onion === name && step !== 'Restart')
          assert.equal(next.renewal, before.renewal + (anew ? 1 : 0))
          memory.set(name, next)
        }
        if (result.daemon !== undefined) {
          assert.equal(result.daemon.restarts, daemon.restarts + (restarted ? 1 : 0))
          daemon = result.daemon
        }
        const again = heal(
          patients.map((patient) => ({ ...patient, healing: memory.get(patient.name)! })),
          daemon,
          now,
        )
        assert.deepEqual(again.steps, [])
        assert.equal(again.onions.size, 0)
        assert.equal(again.daemon, undefined)
      }
      for (const times of republished.values()) {
        for (const [index, time] of times.entries()) {
          const day = times.slice(0, index).filter((other) => time - other < HEALING_LIMITS.budgetMs)
          assert.ok(day.length < HEALING_LIMITS.republishes, `${times}`)
        }
      }
      for (const [index, time] of restarts.entries()) {
        if (index > 0) assert.ok(time - restarts[index - 1]! >= HEALING_LIMITS.restartMs)
      }
    }),
  )
})
