import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Condition } from '../../core/conditions.ts'
import type { OnionService } from '../api/onion-service.ts'
import type { TorReport, WatchedState } from '../contract.ts'
import type { Observed } from './observed.ts'
import { plan } from './plan.ts'
import {
  condition,
  KEY,
  NOW,
  observed,
  observedOnion,
  onionService,
  reportOf,
  topology,
} from './plan-fixture.ts'
import { observeProber } from './probers.ts'
import { watchPlan } from './reachability.ts'

const web = onionService('web')
const seen = (more: Partial<WatchedState> = {}): WatchedState => ({
  namespace: 'default',
  name: 'web',
  address: KEY.address,
  failures: 0,
  ...more,
})
const missed = (reason: string, more: Partial<WatchedState> = {}): WatchedState =>
  seen({ reachable: false, reason, message: 'so it says', failures: 2, circuits: true, ...more })

function prober(states: WatchedState[], more: Partial<TorReport> = {}): Pick<Observed, 'prober'> {
  const report = { ...reportOf([]), watched: states, ...more }
  return { prober: observeProber('watch/tor', 'default', { report }) }
}

function world(more: Partial<Observed>, onion: OnionService = web): Observed {
  return observed({
    onions: [observedOnion(onion)],
    view: { report: reportOf([{ lastUpload: NOW - 1000 }]) },
    ...more,
  })
}

describe('the condition Reachable', () => {
  const elsewhere = seen({ namespace: 'other', name: 'shop', reachable: true })
  const rows: [what: string, more: Partial<Observed>, expected: string, ready?: string][] = [
    ['nobody to look', {}, 'Unknown NoProber', 'True'],
    ['not looked yet', prober([]), 'Unknown ProbePending', 'True'],
    ['looked, and not certain', prober([seen({ failures: 1 })]), 'Unknown ProbePending', 'True'],
    ['reached', prober([seen({ reachable: true })]), 'True Reached', 'True'],
    [
      'reached under its former key',
      prober([seen({ reachable: true, address: `${'b'.repeat(55)}d` })]),
      'Unknown ProbePending',
    ],
    [
      'a failure that is not confirmed',
      prober([missed('TimedOut', { reachable: true, failures: 1 })]),
      'True Reached',
    ],
    ['not found', prober([missed('DescriptorNotFound')]), 'False DescriptorNotFound', 'False'],
    ['open, and asks for a key', prober([missed('ClientAuthMissing')]), 'False ClientAuthMissing', 'False'],
    ['its backend refuses', prober([missed('GeneralFailure')]), 'False BackendUnreachable', 'False'],
    ['its backend hangs up', prober([missed('BackendClosed')]), 'False BackendUnreachable'],
    [
      'no circuit comes through, and its backend is known not to answer',
      {
        ...prober([missed('TimedOut')]),
        view: { report: reportOf([{ lastUpload: NOW - 1000, backendError: 'refused' }]) },
      },
      'False BackendUnreachable',
    ],
    ['a bad page', prober([missed('PageFailed')]), 'False PageFailed', 'False'],
    [
      'who looks has no network, and nobody else to see',
      prober([missed('TimedOut', { circuits: false })]),
      'Unknown ProberSuspect',
      'True',
    ],
    [
      'who looks has no circuit then, and reaches another onion',
      prober([missed('TimedOut', { circuits: false }), elsewhere]),
      'False TimedOut',
    ],
    [
      'who looks reaches a target of its own',
      prober([missed('TimedOut', { circuits: false })], {
        targets: [{ proxy: 'p', target: 't', reachable: true, listening: true }],
      }),
      'False TimedOut',
    ],
    [
      'who looks reaches nobody, in several places: its clock may be wrong',
      prober([missed('DescriptorNotFound'), { ...elsewhere, reachable: false, failures: 2, circuits: true }]),
      'Unknown ProberSuspect',
      'True',
    ],
    [
      'who looks fails by itself',
      prober([missed('ProxyUnreachable'), elsewhere]),
      'Unknown ProberSuspect',
      'True',
    ],
    [
      'who looks is silent',
      { prober: observeProber('watch/tor', 'default', { error: 'gone' }) },
      'Unknown NoProber',
      'True',
    ],
    [
      'who looks is not connected',
      prober([seen({ reachable: true })], { tor: { ...reportOf([]).tor, bootstrapped: false } }),
      'Unknown NoProber',
      'True',
    ],
    [
      'not published',
      { ...prober([missed('DescriptorNotFound')]), view: { report: reportOf([{ state: 'added' }]) } },
      'Unknown NotPublished',
      'False',
    ],
    [
      'its own agent is silent, and it is reached',
      {
        ...prober([seen({ reachable: true })]),
        view: { error: 'no answer' },
        pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'tor-0' }, status: { podIP: '127.77.0.2' } },
      },
      'True Reached',
      'Unknown',
    ],
  ]
  for (const [what, more, expected, ready] of rows) {
    test(what, () => {
      const result = plan(world(more), NOW)
      const { status, reason } = condition(result, 'web', 'Reachable')
      assert.equal(`${status} ${reason}`, expected)
      if (ready !== undefined) assert.equal(condition(result, 'web', 'Ready').status, ready)
    })
  }

  test('names whoever looks, and stays as it is while times pass', () => {
    const say = (more: Partial<WatchedState>): string =>
      condition(plan(world(prober([seen({ reachable: true, ...more })])), NOW), 'web', 'Reachable').message
    assert.match(say({}), /watch\/tor/)
    assert.equal(say({ probed: 1, latencyMs: 5 }), say({ probed: 2, latencyMs: 6 }))
  })

  test('a private onion is looked at as far as one can without a key', () => {
    const closed = onionService('web', {
      clientAuthorization: { clients: [{ name: 'a', generate: true }] },
    })
    const clients = [{ name: 'a', state: 'valid' as const, publicKey: 'A'.repeat(52) }]
    const result = plan(
      world({
        onions: [observedOnion(closed, { clients })],
        ...prober([seen({ reachable: true, reason: 'DescriptorFound' })]),
      }),
      NOW,
    )
    assert.equal(condition(result, 'web', 'Reachable').reason, 'DescriptorFound')
  })

  test('who does not want to be looked at is not', () => {
    const quiet = onionService('web', { probe: { enabled: false } })
    const result = plan(world({ ...prober([]), onions: [observedOnion(quiet)] }), NOW)
    assert.equal(condition(result, 'web', 'Reachable').reason, 'ProbeDisabled')
  })
})

describe('what another daemon looks at', () => {
  const published = (status: string, reason: string): Condition[] => [
    {
      type: 'Published',
      status: status as 'True',
      reason,
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    },
  ]
  const onion = (
    more: Partial<OnionService['spec']> = {},
    conditions = published('True', 'DescriptorUploaded'),
  ) => ({
    ...onionService('web', more),
    status: { hostname: `${KEY.address}.onion`, conditions },
  })
  const whole = { namespace: 'default', name: 'web', address: KEY.address, port: 80, every: 300 }

  test('is a published onion, by its first port', () => {
    assert.deepEqual(watchPlan(onion()), whole)
    const probe = { intervalSeconds: 60, http: { path: '/up' } }
    assert.deepEqual(watchPlan(onion({ probe })), { ...whole, every: 60, http: { path: '/up' } })
    const clientAuthorization = { clients: [{ name: 'a', generate: true as const }] }
    assert.deepEqual(watchPlan(onion({ clientAuthorization })), { ...whole, private: true })
  })

  test('is nothing that cannot be seen, or does not want to be', () => {
    assert.equal(watchPlan(onion({ probe: { enabled: false } })), undefined)
    assert.equal(watchPlan(onion({}, published('False', 'UploadPending'))), undefined)
    assert.equal(watchPlan(onion({}, published('Unknown', 'Pending'))), undefined)
    assert.equal(watchPlan(onionService('web')), undefined)
    const going = onion()
    going.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
    assert.equal(watchPlan(going), undefined)
    const strange = onion()
    strange.status.hostname = 'example.org'
    assert.equal(watchPlan(strange), undefined)
  })

  test('stays while nobody hears of its own daemon: a start of the operator changes no topology', () => {
    assert.deepEqual(watchPlan(onion({}, published('Unknown', 'AgentSilent'))), whole)
  })

  test('stands in the topology, and gives way where that would be too large', () => {
    const one = watchPlan(onion())!
    const watch = [one, { ...one, name: 'other' }]
    assert.deepEqual((topology(plan(observed({ watch }), NOW)) as { watch?: unknown }).watch, watch)
    const many = Array.from({ length: 20_000 }, (_, index) => ({ ...one, name: `n-${index}` }))
    const result = plan(observed({ watch: many }), NOW)
    assert.equal((topology(result) as { watch?: unknown }).watch, undefined)
  })
})
