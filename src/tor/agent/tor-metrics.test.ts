import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { SILENT } from '../../core/logger.ts'
import type { AddOnion } from '../control/add-onion.ts'
import { readCircuits } from '../control/circuits.ts'
import type { ControlClient } from '../control/client.ts'
import { startTestTor, type TestTor } from '../control/testing-tor.ts'
import { generateOnionKey, type OnionKey } from '../onion/key.ts'
import { introCircuits, TorMetrics, type TorMetricsOptions } from './tor-metrics.ts'

/** With the network on, since tor opens its port only then; all that it may connect to is a bridge that is not there. */
function lonelyTor(): Promise<TestTor> {
  return startTestTor(() => ['DisableNetwork 0', 'UseBridges 1', 'Bridge 127.0.0.1:1'])
}

function torMetrics(control: () => ControlClient | undefined, more: Partial<TorMetricsOptions>): TorMetrics {
  return new TorMetrics({
    host: '127.0.0.9',
    control,
    bootstrapped: () => true,
    addresses: () => true,
    onions: () => [],
    log: SILENT,
    freshMs: 0,
    timeoutMs: 20_000,
    ...more,
  })
}

const key = generateOnionKey()

function addition({ secret }: OnionKey): AddOnion {
  const words = `ED25519-V3:${Buffer.from(secret).toString('base64')}`
  return { key: words, flags: ['Detach'], ports: [{ virtualPort: 80, target: 'unix:/nowhere' }] }
}

async function listeners(control: ControlClient): Promise<string | undefined> {
  return (await control.getInfo('net/listeners/metrics'))['net/listeners/metrics']
}

test('what a real tor says of our onions, and of no other', async () => {
  await using tor = await lonelyTor()
  const control = await tor.client()
  const other = generateOnionKey()
  await control.addOnion(addition(key))
  await control.addOnion(addition(other))
  const metrics = torMetrics(() => control, { onions: () => [key.address], host: '192.0.2.7' })
  await metrics.refresh()
  assert.match((await listeners(control)) ?? '', /^"127\.0\.0\.1:\d+"$/)
  assert.deepEqual(metrics.errors, { control: 0, metrics: 0 })
  const { rejected, rendezvousErrors, ...numbers } = metrics.figures(key.address)
  assert.deepEqual(numbers, { introCircuits: 0, powEffort: 0, powQueue: 0, rendezvous: 0 })
  assert.deepEqual(
    [...rejected].sort(),
    ['bad_auth_key', 'invalid_introduce2', 'replay', 'subcredential'].map((reason) => [reason, 0]),
  )
  assert.ok(rendezvousErrors.has('rp_conn_failure'))
  assert.equal(metrics.figures(other.address).powEffort, undefined)
  const before = await listeners(control)
  await metrics.refresh()
  assert.equal(await listeners(control), before, 'the port is opened once')
  await control.close()
})

test('where the loopback is shared, the port is open only while addresses may be seen', async () => {
  await using tor = await lonelyTor()
  const control = await tor.client()
  await control.addOnion(addition(key))
  let addresses = false
  const metrics = torMetrics(() => control, {
    onions: () => [key.address],
    addresses: () => addresses,
    freshMs: 20,
  })
  await metrics.refresh()
  assert.equal(await listeners(control), '')
  const { rejected, rendezvousErrors, ...numbers } = metrics.figures(key.address)
  assert.deepEqual([numbers, rejected.size, rendezvousErrors.size], [{ introCircuits: 0 }, 0, 0])
  addresses = true
  await pause(40)
  await metrics.refresh()
  assert.match((await listeners(control)) ?? '', /^"127\.0\.0\.9:\d+"$/)
  assert.equal(metrics.figures(key.address).powEffort, 0)
  addresses = false
  for (const end = Date.now() + 20_000; (await listeners(control)) !== ''; await pause(20)) {
    assert.ok(Date.now() < end, 'the port is closed, though nobody scrapes any more')
  }
  assert.deepEqual(metrics.errors, { control: 0, metrics: 0 })
  await control.close()
})

test('a tor that does not answer is counted, and what it said before is forgotten', async () => {
  await using tor = await lonelyTor()
  const control = await tor.client()
  await control.addOnion(addition(key))
  let there: ControlClient | undefined = control
  const metrics = torMetrics(() => there, { onions: () => [key.address] })
  await metrics.refresh()
  assert.equal(metrics.figures(key.address).powEffort, 0)
  const silent = torMetrics(() => control, { onions: () => [key.address], timeoutMs: 50 })
  tor.process.kill('SIGSTOP')
  await silent.refresh()
  assert.deepEqual(silent.errors, { control: 1, metrics: 1 })
  assert.deepEqual(silent.figures(key.address), { rejected: new Map(), rendezvousErrors: new Map() })
  tor.process.kill('SIGCONT')
  await metrics.refresh()
  await control.close()
  await metrics.refresh()
  assert.deepEqual(metrics.errors, { control: 1, metrics: 1 })
  assert.equal(metrics.figures(key.address).introCircuits, undefined)
  there = undefined
  await metrics.refresh()
  assert.deepEqual(metrics.errors, { control: 1, metrics: 1 }, 'a tor that is not there is no error of this')
})

test('scrapes that come together, or soon after, ask tor once', async () => {
  let asked = 0
  const control = {
    getInfo: async () => {
      asked += 1
      return { 'circuit-status': '' }
    },
  } as unknown as ControlClient
  const metrics = torMetrics(() => control, { bootstrapped: () => false, freshMs: 60_000 })
  await Promise.all([metrics.refresh(), metrics.refresh()])
  await metrics.refresh()
  assert.equal(asked, 1)
})

test('introduction circuits are counted once they stand', () => {
  const [one, two] = ['a', 'b'].map((letter) => letter.repeat(56)) as [string, string]
  const line = (id: number, status: string, state: string, onion: string): string =>
    `${id} ${status} $${'A'.repeat(40)}~r BUILD_FLAGS=IS_INTERNAL PURPOSE=HS_SERVICE_${state} REND_QUERY=${onion} TIME_CREATED=2030-01-01T00:00:00`
  const status = [
    line(1, 'BUILT', 'INTRO HS_STATE=HSSI_ESTABLISHED', one),
    line(2, 'BUILT', 'INTRO HS_STATE=HSSI_ESTABLISHED', one),
    line(3, 'BUILT', 'INTRO HS_STATE=HSSI_CONNECTING', one),
    line(4, 'EXTENDED', 'INTRO HS_STATE=HSSI_CONNECTING', one),
    line(5, 'BUILT', 'REND HS_STATE=HSSR_JOINED', one),
    line(6, 'BUILT', 'INTRO HS_STATE=HSSI_ESTABLISHED', two),
  ]
  assert.deepEqual([...introCircuits(readCircuits(status.join('\n')), new Set([one]))], [[one, 2]])
  assert.equal(introCircuits(readCircuits(status.join('\r\n')), new Set([one, two])).size, 2)
})
