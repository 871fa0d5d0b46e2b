import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { SocksError } from '../../relay/socks-error.ts'
import type { ProxyPlan } from '../contract.ts'
import { type ProbeAttempt, Probes, type ProbesOptions } from './probes.ts'

const ONION = `${'a'.repeat(55)}d.onion`
let probes: Probes | undefined
afterEach(() => probes?.close())

function start(attempt: ProbeAttempt, more: Partial<ProbesOptions> = {}): Probes {
  probes = new Probes({ attempt, onChange() {}, intervalMs: 30, retryMs: 10, random: () => 0, ...more })
  return probes
}

const plan = (...names: string[]): ProxyPlan[] => [
  { name: 'p', targets: names.map((name, i) => ({ name, onion: ONION, port: 80, listenPort: 1000 + i })) },
]

async function until(what: string, check: () => boolean, limitMs = 10_000): Promise<void> {
  const end = performance.now() + limitMs
  while (!check()) {
    assert.ok(performance.now() < end, `not within ${limitMs} ms: ${what}`)
    await pause(2)
  }
}

test('nothing is known before tor is up, nor after it went down', async () => {
  let tries = 0
  const tested = start(async () => {
    tries += 1
  })
  tested.want(plan('a'))
  await pause(10)
  assert.equal(tries, 0)
  tested.enable(true)
  await until('reachable', () => tested.result('p', 'a')?.reachable === true)
  tested.enable(false)
  assert.equal(tested.result('p', 'a'), undefined)
})

test('each probe has a circuit of its own, again and again', async () => {
  const users: string[] = []
  const tested = start(async (_target, { username, extended }) => {
    assert.equal(extended, false)
    users.push(username)
  })
  tested.enable(true)
  tested.want(plan('a'))
  await until('three probes', () => users.length >= 3)
  assert.equal(new Set(users).size, users.length)
})

test('a failure is explained by the second port; its word is not taken where it got none', async () => {
  const second = { a: 0xf0, b: -1 } as Record<string, number>
  const tested = start(async (target, { extended }) => {
    const reply = second[target.name]!
    if (!extended) throw new SocksError('HostUnreachable', { reply: 4 })
    throw new SocksError(reply < 0 ? 'TimedOut' : 'DescriptorNotFound', { reply })
  })
  tested.enable(true)
  tested.want(plan('a', 'b'))
  await until('both', () => ['a', 'b'].every((name) => tested.result('p', name) !== undefined))
  assert.equal(tested.result('p', 'a')!.reason, 'DescriptorNotFound')
  assert.match(tested.result('p', 'a')!.message!, /0xf0/)
  assert.equal(tested.result('p', 'b')!.reason, 'HostUnreachable')
})

test('a target that the second attempt reaches is reachable', async () => {
  const tested = start(async (_target, { extended }) => {
    if (!extended) throw new SocksError('TimedOut')
  })
  tested.enable(true)
  tested.want(plan('a'))
  await until('reachable', () => tested.result('p', 'a')?.reachable === true)
})

test('no more than three at a time, and all of them', async () => {
  let running = 0
  let most = 0
  const done = new Set<string>()
  const tested = start(async ({ name }) => {
    running += 1
    most = Math.max(most, running)
    await pause(3)
    running -= 1
    done.add(name)
  })
  tested.want(plan(...'abcdefghij'))
  tested.enable(true)
  await until('all', () => done.size === 10)
  assert.equal(most, 3)
})

test('a changed target is probed anew, what is gone is not', async () => {
  const ports: number[] = []
  const tested = start(async ({ port }) => {
    ports.push(port)
  })
  tested.enable(true)
  tested.want(plan('a'))
  await until('the first', () => ports.includes(80))
  const changed = plan('a')
  changed[0]!.targets[0]!.port = 81
  tested.want(changed)
  await until('the second', () => ports.includes(81))
  tested.want([])
  const { length } = ports
  await pause(60)
  assert.ok(ports.length <= length + 1)
  assert.equal(tested.result('p', 'a'), undefined)
})

test('who waited for a place when tor went down is not asked before it is up, and then once', async () => {
  const asked: string[] = []
  const tested = start(
    (target, { signal }) => {
      asked.push(target.name)
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
    { parallel: 1 },
  )
  tested.want(plan('a', 'b'))
  tested.enable(true)
  await until('a is asked', () => asked.length === 1)
  // Its timer has run out: it is in the queue.
  await pause(20)
  tested.enable(false)
  await pause(20)
  assert.deepEqual(asked, ['a'])
  tested.enable(true)
  await until('a is asked again', () => asked.length === 2)
})
