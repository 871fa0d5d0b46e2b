import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { SocksError } from '../../relay/socks-error.ts'
import { type ProbeAttempt, ProbeFailure, Probes, type ProbesOptions, type ProbeTarget } from './probes.ts'

const ONION = `${'a'.repeat(55)}d.onion`
type Target = ProbeTarget & { name: string }
let probes: Probes<Target> | undefined
afterEach(() => probes?.close())

function start(
  attempt: (...all: Parameters<ProbeAttempt<Target>>) => Promise<unknown>,
  more: Partial<ProbesOptions<Target>> = {},
): Probes<Target> {
  const answered = attempt as ProbeAttempt<Target>
  probes = new Probes({
    attempt: answered,
    onChange() {},
    intervalMs: 30,
    retryMs: 10,
    random: () => 0,
    ...more,
  })
  return probes
}

const plan = (...names: string[]): Map<string, Target> =>
  new Map(names.map((name) => [name, { name, onion: ONION, port: 80 }]))

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
  await until('reachable', () => tested.result('a')?.reachable === true)
  tested.enable(false)
  assert.equal(tested.result('a'), undefined)
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
  await until('both', () => ['a', 'b'].every((name) => tested.result(name) !== undefined))
  assert.equal(tested.result('a')!.reason, 'DescriptorNotFound')
  assert.match(tested.result('a')!.message!, /0xf0/)
  assert.equal(tested.result('b')!.reason, 'HostUnreachable')
})

test('a second attempt that comes through to nobody says so, whatever the first one met', async () => {
  const tested = start(async (_target, { extended }) => {
    throw extended ? new ProbeFailure('BackendClosed', 'nobody') : new SocksError('TimedOut')
  })
  tested.enable(true)
  tested.want(plan('a'))
  await until('a failure', () => tested.result('a') !== undefined)
  assert.equal(tested.result('a')!.reason, 'BackendClosed')
})

test('a target that the second attempt reaches is reachable', async () => {
  const tested = start(async (_target, { extended }) => {
    if (!extended) throw new SocksError('TimedOut')
  })
  tested.enable(true)
  tested.want(plan('a'))
  await until('reachable', () => tested.result('a')?.reachable === true)
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
  tested.want(new Map([['a', { name: 'a', onion: ONION, port: 81 }]]))
  await until('the second', () => ports.includes(81))
  tested.want(new Map())
  const { length } = ports
  await pause(60)
  assert.ok(ports.length <= length + 1)
  assert.equal(tested.result('a'), undefined)
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

test('one failure is none: what was reachable stays so until a second one confirms it', async () => {
  let works = true
  const seen: (string | undefined)[] = []
  const tested = start(
    async () => {
      if (!works) throw new SocksError('IntroductionFailed', { reply: 0xf2 })
    },
    {
      confirm: 2,
      onChange() {
        const result = probes?.result('a')
        if (result !== undefined) seen.push(`${result.reachable} ${result.failures} ${result.reason ?? ''}`)
      },
    },
  )
  tested.want(plan('a'))
  tested.enable(true)
  await until('reachable', () => tested.result('a')?.reachable === true)
  works = false
  await until('unreachable', () => tested.result('a')?.reachable === false)
  works = true
  await until('reachable again', () => tested.result('a')?.reachable === true)
  assert.deepEqual(seen.slice(0, 3), ['true 0 ', 'true 1 IntroductionFailed', 'false 2 IntroductionFailed'])
  assert.equal(seen.at(-1), 'true 0 ')
})

test('a target that was never reached is not called unreachable at its first failure', async () => {
  const tested = start(async () => Promise.reject(new SocksError('TimedOut')), { confirm: 2, retryMs: 50 })
  tested.want(plan('a'))
  tested.enable(true)
  await until('a failure', () => tested.result('a')?.failures === 1)
  assert.equal(tested.result('a')!.reachable, undefined)
})

test('a probe that comes out as the one before is no news', async () => {
  let changes = 0
  let tries = 0
  const tested = start(
    async () => {
      tries += 1
    },
    {
      onChange() {
        changes += 1
      },
    },
  )
  tested.want(plan('a'))
  tested.enable(true)
  await until('some probes', () => tries > 4)
  // What is wanted, that tor is up, and the first result.
  assert.equal(changes, 3)
})

test('two probes do not begin closer together than they may', async () => {
  const began: number[] = []
  const tested = start(
    async () => {
      began.push(performance.now())
    },
    { gapMs: 40 },
  )
  tested.want(plan('a', 'b', 'c', 'd'))
  tested.enable(true)
  await until('all of them', () => began.length >= 5)
  // A timer may be early by a millisecond, never by many.
  for (const [index, at] of began.entries()) {
    if (index > 0) assert.ok(at - began[index - 1]! > 35, began.join(' '))
  }
})

test('who failed once has its next turn before those who only wait for theirs', async () => {
  const order: string[] = []
  const holds: (() => void)[] = []
  const tested = start(
    async ({ name }, { extended }) => {
      if (extended) throw new SocksError('TimedOut')
      order.push(name)
      await new Promise<void>((done) => holds.push(done))
      if (name === 'a') throw new SocksError('TimedOut')
    },
    { confirm: 2, parallel: 1, retryMs: 1, intervalMs: 5_000 },
  )
  tested.want(plan('a', 'b', 'c'))
  tested.enable(true)
  await until('the first', () => holds.length === 1)
  // b and c wait; a fails, and is due again while b is looked at.
  await pause(30)
  holds[0]!()
  await until('the second', () => holds.length === 2)
  await pause(30)
  holds[1]!()
  await until('the third', () => holds.length === 3)
  assert.deepEqual(order, ['a', 'b', 'a'])
})

test('a failure is told with what the way is good for, and one that is expected is none', async () => {
  const tested = start(
    async ({ name }) => {
      if (name === 'mute') throw new ProbeFailure('BackendClosed', 'nothing answered')
      throw new SocksError('ClientAuthMissing', { reply: 0xf4 })
    },
    {
      network: async () => true,
      expected: ({ name }, { reason }) =>
        name === 'private' && reason === 'ClientAuthMissing' ? { reason: 'DescriptorFound' } : undefined,
    },
  )
  tested.want(plan('private', 'open', 'mute'))
  tested.enable(true)
  await until('all', () => ['private', 'open', 'mute'].every((name) => tested.result(name) !== undefined))
  const told = (name: string): unknown[] => {
    const { reachable, reason, network } = tested.result(name)!
    return [reachable, reason, network]
  }
  assert.deepEqual(told('private'), [true, 'DescriptorFound', undefined])
  assert.deepEqual(told('open'), [false, 'ClientAuthMissing', true])
  assert.deepEqual(told('mute'), [false, 'BackendClosed', true])
})
