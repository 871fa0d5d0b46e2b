import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Condition } from '../../core/conditions.ts'
import { splitKey } from '../../core/resource.ts'
import type { OnionService } from '../api/onion-service.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import type { WatchedState } from '../contract.ts'
import { DAEMON, KEY, onionService, reportOf } from './plan-fixture.ts'
import { Probers, type ProbersOptions } from './probers.ts'

let woken: string[] = []
let probers: Probers
afterEach(() => probers.close())

function start(more: Partial<ProbersOptions> = {}): void {
  woken = []
  probers = new Probers({
    enqueue: (daemon) => woken.push(daemon),
    daemonOf: (onion) => `${splitKey(onion).namespace}/tor`,
    ...more,
  })
}

const condition = (type: string, status: 'True' | 'Unknown'): Condition => ({
  type,
  status,
  reason: 'Because',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
})
function declare(key: string, connected = false): void {
  const { namespace, name } = splitKey(key)
  const conditions = [condition('TorBootstrapped', connected ? 'True' : 'Unknown')]
  probers.daemon(key, {
    ...DAEMON,
    metadata: { ...DAEMON.metadata, namespace, name },
    status: { conditions },
  } as TorDaemon)
}
const report = (bootstrapped: boolean, watched?: WatchedState[]) => ({
  report: {
    ...reportOf([]),
    tor: { ...reportOf([]).tor, bootstrapped },
    ...(watched === undefined ? {} : { watched }),
  },
})

async function until(what: string, check: () => boolean): Promise<void> {
  for (const end = performance.now() + 10_000; !check(); await pause(2)) {
    assert.ok(performance.now() < end, `not in time: ${what}; woken: ${woken}`)
  }
}
/** Nothing more comes of what was told so far. */
const settled = (): Promise<void> => pause(20)

test('one looks as soon as it is connected, and both hear of it', async () => {
  start()
  declare('a/tor')
  declare('b/tor')
  await settled()
  assert.equal(probers.proberOf('a/tor'), undefined)
  probers.heard('b/tor', report(true))
  await until('both to be woken', () => woken.includes('a/tor') && woken.includes('b/tor'))
  assert.equal(probers.proberOf('a/tor'), 'b/tor')
  assert.deepEqual(probers.watchedBy('b/tor'), ['a/tor'])
  assert.equal(probers.proberOf('b/tor'), undefined)
})

test('a start of the operator moves nobody: who was connected has its time to be heard of', async () => {
  start({ graceMs: 100 })
  declare('a/tor', true)
  declare('b/tor', true)
  assert.equal(probers.proberOf('a/tor'), 'b/tor')
  probers.heard('b/tor', { error: 'no answer yet' })
  assert.equal(probers.proberOf('a/tor'), 'b/tor')
  probers.heard('b/tor', report(true))
  // a was never heard of, and looks no more once its time is over; b was.
  await until('a to be given up', () => probers.proberOf('b/tor') === undefined)
  assert.equal(probers.proberOf('a/tor'), 'b/tor')
})

test('one that is lost goes on for a while, and then another one takes over', async () => {
  start({ graceMs: 60 })
  for (const key of ['a/tor', 'b/tor', 'c/tor']) declare(key)
  for (const key of ['b/tor', 'c/tor']) probers.heard(key, report(true))
  const first = probers.proberOf('a/tor')!
  const second = first === 'b/tor' ? 'c/tor' : 'b/tor'
  await settled()
  woken = []
  probers.heard(first, report(false))
  assert.equal(probers.proberOf('a/tor'), first)
  // A word that it is connected again ends the time that it had.
  probers.heard(first, report(true))
  await pause(120)
  assert.equal(probers.proberOf('a/tor'), first)
  probers.heard(first, undefined)
  await until('another one to take over', () => probers.proberOf('a/tor') === second)
  await until('all to be woken', () => ['a/tor', first, second].every((key) => woken.includes(key)))
})

test('one that is deleted looks no more at once', async () => {
  start()
  declare('a/tor')
  declare('b/tor')
  probers.heard('b/tor', report(true))
  assert.equal(probers.proberOf('a/tor'), 'b/tor')
  probers.daemon('b/tor', undefined)
  assert.equal(probers.proberOf('a/tor'), undefined)
})

test('who looks tells of what it sees: only those are woken for whom that is news', async () => {
  start()
  const a: WatchedState = { namespace: 'a', name: 'web', address: KEY.address, failures: 0, reachable: true }
  const b = { ...a, namespace: 'b' }
  const say = (states: WatchedState[]): string[] => {
    woken = []
    probers.heard('c/tor', report(true, states))
    return woken
  }
  assert.deepEqual(say([a, b]), ['a/tor', 'b/tor'])
  assert.deepEqual(say([{ ...a, probed: 5, latencyMs: 3 }, b]), [])
  assert.deepEqual(say([a, { ...b, failures: 1 }]), ['b/tor'])
  assert.deepEqual(say([a, { ...b, failures: 2, reachable: false }]), ['b/tor'])
  assert.deepEqual(say([{ ...b, failures: 2, reachable: false }]), ['a/tor'])
  woken = []
  probers.heard('c/tor', { error: 'gone' })
  assert.deepEqual(woken, ['b/tor'])
})

test('a change of what is looked at reaches whoever looks a little later, many of them at once', async () => {
  start({ settleMs: 30 })
  declare('a/tor')
  declare('b/tor')
  probers.heard('b/tor', report(true))
  await settled()
  woken = []
  const before: OnionService = onionService('web')
  const published: OnionService = {
    ...before,
    status: { hostname: `${KEY.address}.onion`, conditions: [condition('Published', 'True')] },
  }
  probers.onion(before, { ...before, status: { ready: false } }, 'a/tor')
  probers.onion(before, published, 'a/tor')
  probers.onion(undefined, published, 'a/tor')
  assert.deepEqual(woken, [])
  await until('b to be woken', () => woken.length > 0)
  await pause(60)
  assert.deepEqual(woken, ['b/tor'])
  probers.onion(published, { ...published, status: { ...published.status, ready: true } }, 'a/tor')
  await pause(60)
  assert.deepEqual(woken, ['b/tor'])
})
