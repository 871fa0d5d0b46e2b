import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Plan } from '../../controller/plan.ts'
import type { OnionService } from '../api/onion-service.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import type { OnionPlan, OnionState, TorTopology, WatchedState } from '../contract.ts'
import type { KeyState, Observed } from './observed.ts'
import { plan } from './plan.ts'
import {
  DAEMON,
  KEY,
  NOW,
  observed,
  observedOnion,
  onionService,
  reportOf,
  topology,
} from './plan-fixture.ts'
import { observeProber } from './probers.ts'

const MINUTE = 60_000

interface World {
  onion?: OnionService
  daemon?: TorDaemon
  state?: Partial<OnionState>
  sight?: Partial<WatchedState>
  more?: Partial<Observed>
}

function world({ onion = onionService('web'), daemon = DAEMON, state, sight, more }: World): Observed {
  const watched: WatchedState = {
    namespace: 'default',
    name: 'web',
    address: KEY.address,
    reachable: false,
    reason: 'IntroductionFailed',
    message: 'no',
    failures: 2,
    circuits: true,
    ...sight,
  }
  return observed({
    object: daemon,
    onions: [observedOnion(onion)],
    view: { report: reportOf([{ lastUpload: NOW - 1000, ...state }]) },
    prober: observeProber('watch/tor', 'default', { report: { ...reportOf([]), watched: [watched] } }),
    ...more,
  })
}

const events = (result: Plan): string[] =>
  result.notes
    .filter(({ reason }) => reason.startsWith('Healing'))
    .map(({ about, reason }) => `${about.kind} ${reason}`)
const told = (result: Plan): { renewal: number | undefined; daemon: Partial<TorTopology['daemon']> } => {
  const document = topology(result) as unknown as TorTopology
  const { restarts, freshCircuits } = document.daemon
  return {
    renewal: (document.onions[0] as OnionPlan).renewal,
    daemon: {
      ...(restarts === undefined ? {} : { restarts }),
      ...(freshCircuits === undefined ? {} : { freshCircuits }),
    },
  }
}
const statusOf = (result: Plan, name: string): Record<string, unknown> =>
  result.status.find(({ ref }) => ref.name === name)!.status

/** The objects as they are once the plan was applied. */
function applied(result: Plan): { onion: OnionService; daemon: TorDaemon } {
  return {
    onion: { ...onionService('web'), status: statusOf(result, 'web') as NonNullable<OnionService['status']> },
    daemon: { ...DAEMON, status: statusOf(result, 'tor') as NonNullable<TorDaemon['status']> },
  }
}

test('the ladder: each step is an event, a number in the topology, and remembered in the status', () => {
  const first = plan(world({}), NOW)
  assert.deepEqual(events(first), ['OnionService HealingRepublished'])
  assert.deepEqual(told(first), { renewal: 1, daemon: {} })
  assert.deepEqual(statusOf(first, 'web').healing, {
    renewal: 1,
    attempts: 1,
    failures: 2,
    lastAttempt: '2026-01-02T12:00:00Z',
    republished: ['2026-01-02T12:00:00Z'],
  })

  const second = plan(world({ ...applied(first), sight: { failures: 4 } }), NOW + 5 * MINUTE)
  assert.deepEqual(events(second), ['OnionService HealingFreshCircuits'])
  assert.deepEqual(told(second), { renewal: 2, daemon: { freshCircuits: 1 } })

  const third = plan(world({ ...applied(second), sight: { failures: 6 } }), NOW + 15 * MINUTE)
  assert.deepEqual(events(third), ['OnionService HealingTorRestarted', 'TorDaemon HealingTorRestarted'])
  assert.deepEqual(told(third), { renewal: 2, daemon: { freshCircuits: 1, restarts: 1 } })

  const after = plan(world({ ...applied(third), sight: { failures: 99 } }), NOW + 24 * 60 * MINUTE)
  assert.deepEqual(events(after), [])
  assert.deepEqual(told(after), told(third))
})

test('an operator that starts anew, or has no report, repeats nothing, forgets nothing, and changes no topology', () => {
  const first = plan(world({}), NOW)
  const next = plan(world(applied(first)), NOW + MINUTE)
  assert.deepEqual(events(next), [])
  assert.deepEqual(told(next), told(first))
  const { prober: _prober, view: _view, ...rest } = world(applied(first))
  const blind = plan(rest, NOW + MINUTE)
  assert.deepEqual(told(blind), told(first))
  assert.deepEqual(statusOf(blind, 'web').healing, statusOf(first, 'web').healing)
})

test('reached again: the ladder begins anew, the numbers stay', () => {
  const first = plan(world({}), NOW)
  const well = plan(world({ ...applied(first), sight: { reachable: true, failures: 0 } }), NOW + MINUTE)
  assert.deepEqual(told(well), told(first))
  assert.deepEqual(statusOf(well, 'web').healing, {
    ...(statusOf(first, 'web').healing as object),
    attempts: 0,
    failures: 0,
  })
})

const quiet: [what: string, world: World][] = [
  ['one failure', { sight: { failures: 1, reachable: true } }],
  ['its backend refuses', { sight: { reason: 'GeneralFailure' } }],
  ['its page is bad', { sight: { reason: 'PageFailed' } }],
  ['its backend is known not to answer', { state: { backendError: 'refused' } }],
  ['it is not published', { state: { state: 'added' } }],
  [
    'its own tor is not connected',
    { more: { view: { report: { ...reportOf([{}]), tor: { ...reportOf([]).tor, bootstrapped: false } } } } },
  ],
  ['its own agent is silent', { more: { view: { error: 'gone' } } }],
  [
    'its pod is leaving',
    { more: { view: { report: { ...reportOf([{ lastUpload: NOW }]), leaving: true } } } },
  ],
  ['who looks has no network', { sight: { circuits: false } }],
  ['who looks failed by itself', { sight: { reason: 'ProxyUnreachable' } }],
]
for (const [what, state] of quiet) {
  test(`nothing is done where ${what}`, () => {
    const result = plan(world(state), NOW)
    assert.deepEqual(events(result), [])
    assert.equal(told(result).renewal, undefined)
    assert.equal(statusOf(result, 'web').healing, undefined)
  })
}

test('a former address is not published anew with the one that is', () => {
  const onion = world({}).onions[0]!
  const address = `${'b'.repeat(55)}d`
  const former = [
    {
      served: 'web.former-1',
      secret: 'old',
      until: NOW + MINUTE,
      key: { ...onion.key, address } as KeyState,
    },
  ]
  const result = plan(world({ more: { onions: [{ ...onion, former }] } }), NOW)
  const { onions } = topology(result) as unknown as TorTopology
  assert.deepEqual(
    onions.map(({ name, renewal }) => [name, renewal]),
    [
      ['web', 1],
      ['web.former-1', undefined],
    ],
  )
})

test('what somebody wrote into the status is taken for nothing, or for numbers', () => {
  const nonsense = {
    renewal: -1,
    attempts: 'x',
    failures: 1.5,
    lastAttempt: 'then',
    republished: [1, 'now', null],
  }
  const onion = {
    ...onionService('web'),
    status: { healing: nonsense } as unknown as NonNullable<OnionService['status']>,
  }
  const result = plan(world({ onion }), NOW)
  assert.deepEqual(told(result), { renewal: 1, daemon: {} })
})
