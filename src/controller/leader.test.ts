import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SILENT } from '../core/logger.ts'
import { LEASE_DURATION, RENEW_DEADLINE } from './leader.ts'
import { Host, LeaseServer, Timeline } from './leader-fixture.ts'

const leaders = (hosts: Host[]): string[] =>
  hosts.filter((host) => host.alive && host.leadership.leads()).map((host) => host.identity)

function make(count: number): { time: Timeline; server: LeaseServer; hosts: Host[] } {
  const time = new Timeline()
  const server = new LeaseServer()
  const hosts = Array.from({ length: count }, (_, index) => new Host(`host-${index}`, time, server, SILENT))
  return { time, server, hosts }
}

test('the first one leads at once, and renews; the second one waits', async () => {
  const { time, server, hosts } = make(1)
  await time.advance(50)
  assert.deepEqual(leaders(hosts), ['host-0'])
  hosts.push(new Host('host-1', time, server, SILENT))
  await time.advance(120_000)
  assert.deepEqual(leaders(hosts), ['host-0'])
  assert.deepEqual(hosts[0]!.said, ['started'])
  assert.deepEqual(hosts[1]!.said, [])
  const { spec } = server.lease!
  assert.equal(spec!.holderIdentity, 'host-0')
  assert.equal(spec!.leaseDurationSeconds, 15)
  assert.equal(spec!.leaseTransitions, 0)
  assert.match(spec!.renewTime!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  assert.notEqual(spec!.renewTime, spec!.acquireTime)
})

test('a leader that is closed ends its work first, then another takes over at once', async () => {
  const { time, server, hosts } = make(2)
  await time.advance(5_000)
  const [first] = leaders(hosts)
  const leader = hosts.find((host) => host.identity === first)!
  leader.finishAfter = 25_000
  const closed = leader.leadership.close()
  await time.advance(24_000)
  assert.deepEqual(leaders(hosts), [first], 'it leads until its work has ended')
  await time.advance(2_000)
  await closed
  assert.deepEqual(leader.said, ['started', 'ended', 'released'])
  await time.advance(3_500)
  const other = hosts.find((host) => host !== leader)!
  assert.deepEqual(leaders(hosts), [other.identity])
  assert.equal(server.lease!.spec!.leaseTransitions, 1)
  const again = other.leadership.close()
  await time.advance(1_000)
  await again
  assert.equal(server.lease!.spec!.holderIdentity, '')
  assert.equal(server.lease!.spec!.leaseDurationSeconds, 1)
})

test('a leader that dies is followed after the duration of the lease, and not before', async () => {
  const { time, server, hosts } = make(2)
  await time.advance(5_000)
  const leader = hosts.find((host) => host.leadership.leads())!
  leader.alive = false
  const last = server.writtenAt
  while (leaders(hosts).length === 0) {
    assert.ok(time.now < last + 2 * LEASE_DURATION, JSON.stringify(server.lease))
    await time.advance(100)
  }
  assert.ok(time.now >= last + LEASE_DURATION)
})

test('of two that take a lease over in the same moment, one gets it', async () => {
  const { time, server, hosts } = make(3)
  time.check = () => assert.ok(leaders(hosts).length <= 1, leaders(hosts).join(' and '))
  for (const latency of [5, 400, 1_500]) {
    for (const host of hosts) host.latency = latency
    await time.advance(40_000)
    const leader = hosts.find((host) => host.alive && host.leadership.leads())!
    leader.alive = false
    hosts.push(new Host('host-9', time, server, SILENT))
    await time.advance(40_000)
    assert.equal(leaders(hosts).length, 1)
  }
  assert.equal(server.conflicts > 0, true, 'they never met')
})

test('one that cannot renew loses: its work is told, and it never leads again', async () => {
  const { time, hosts } = make(2)
  await time.advance(5_000)
  const leader = hosts.find((host) => host.leadership.leads())!
  leader.network = 'lost-requests'
  const lost = assert.rejects(leader.leadership.done, { code: 'LeadershipLost' })
  await time.advance(RENEW_DEADLINE)
  assert.equal(leader.leadership.leads(), false)
  assert.deepEqual(leader.said, ['started', 'lost', 'ended'])
  assert.match(leader.leadership.problem() ?? '', /does not answer/)
  await lost
  leader.network = 'fine'
  await time.advance(60_000)
  assert.notDeepEqual(leaders(hosts), [leader.identity])
  assert.equal(leaders(hosts).length, 1)
})

test('a frozen leader leads no more when it wakes up, before anything of it has run', async () => {
  const { time, hosts } = make(2)
  await time.advance(5_000)
  const leader = hosts.find((host) => host.leadership.leads())!
  leader.frozenUntil = time.now + 40_000
  await time.advance(39_000)
  assert.equal(leader.leadership.leads(), false)
  assert.equal(leaders(hosts).length, 1)
  await time.advance(10_000)
  assert.deepEqual(leader.said, ['started', 'lost', 'ended'])
})

test('a write whose answer is lost is known again', async () => {
  const { time, server, hosts } = make(1)
  hosts[0]!.network = 'lost-answers'
  await time.advance(2_000)
  hosts[0]!.network = 'fine'
  await time.advance(12_000)
  assert.deepEqual(leaders(hosts), ['host-0'])
  assert.equal(server.lease!.spec!.leaseTransitions, 0)
})

test('somebody with the same name is somebody else', async () => {
  const { time, server, hosts } = make(1)
  await time.advance(5_000)
  const twin = new Host('host-0', time, server, SILENT)
  await time.advance(60_000)
  assert.equal(hosts[0]!.leadership.leads(), true)
  assert.equal(twin.leadership.leads(), false)
})

test('a lease that is deleted is made anew by its leader; who has seen it does not jump in', async () => {
  const { time, server, hosts } = make(2)
  await time.advance(20_000)
  const before = leaders(hosts)
  server.lease = undefined
  for (let step = 0; step < 100; step++) {
    await time.advance(100)
    assert.ok(leaders(hosts).length <= 1)
  }
  assert.deepEqual(leaders(hosts), before)
  assert.ok(server.lease)
})

test('a lease in other hands ends the leadership at once', async () => {
  const { time, server, hosts } = make(1)
  await time.advance(5_000)
  const lost = assert.rejects(
    hosts[0]!.leadership.done,
    /the Lease space\/postern was lost: thief holds it now/,
  )
  server.steal('thief')
  await time.advance(3_500)
  assert.deepEqual(leaders(hosts), [])
  await lost
})

test('without permission it says which, and leads once it is given', async () => {
  const { time, server, hosts } = make(1)
  for (const [verb, what] of [
    ['get', 'get'],
    ['create', 'create'],
  ] as const) {
    server.forbidden = verb
    await time.advance(10_000)
    assert.match(
      hosts[0]!.leadership.problem() ?? '',
      new RegExp(`^no permission to ${what} leases.coordination.k8s.io in the namespace space .*bind a Role`),
    )
    assert.deepEqual(leaders(hosts), [])
  }
  server.forbidden = undefined
  await time.advance(5_000)
  assert.equal(hosts[0]!.leadership.problem(), undefined)
  assert.deepEqual(leaders(hosts), ['host-0'])
  server.forbidden = 'apply'
  await time.advance(5_000)
  assert.match(hosts[0]!.leadership.problem() ?? '', /^no permission to patch leases/)
  assert.deepEqual(leaders(hosts), ['host-0'])
})

test('work that fails ends the leadership with its error, and the lease is free', async () => {
  const { time, server, hosts } = make(1)
  hosts[0]!.failAfter = 3_000
  const failed = assert.rejects(hosts[0]!.leadership.done, /the work failed/)
  await time.advance(6_000)
  await failed
  assert.equal(server.lease!.spec!.holderIdentity, '')
})

test('whatever network, clocks and processes do, two never lead, and in the end one does', async () => {
  const action = fc.record({
    wait: fc.integer({ min: 0, max: 22_000 }),
    who: fc.nat({ max: 7 }),
    what: fc.oneof(
      fc.constantFrom('fine', 'lost-requests', 'lost-answers', 'errors').map((network) => ({ network })),
      fc.integer({ min: 100, max: 40_000 }).map((freeze) => ({ freeze })),
      fc.integer({ min: -86_400_000, max: 86_400_000 }).map((jump) => ({ jump })),
      fc.integer({ min: 1, max: 6_000 }).map((latency) => ({ latency })),
      fc.constantFrom('kill', 'close', 'start').map((process) => ({ process })),
    ),
  })
  let led = 0
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 4, maxLength: 16 }), fc.nat(), async (actions, seed) => {
      const { time, server, hosts } = make(2)
      const rate = (): number => 1 + (((seed + hosts.length * 7) % 5) - 2) / 100
      time.check = () => {
        const now = leaders(hosts)
        assert.ok(now.length <= 1, `${now.join(' and ')} lead at ${time.now}`)
        led += now.length
      }
      for (const { wait, who, what } of actions) {
        await time.advance(wait)
        const host = hosts[who % hosts.length]!
        if ('network' in what) host.network = what.network as Host['network']
        if ('freeze' in what) host.frozenUntil = time.now + what.freeze
        if ('jump' in what) host.wallOffset += what.jump
        if ('latency' in what) host.latency = what.latency
        if (!('process' in what)) continue
        if (what.process === 'kill') host.alive = false
        if (what.process === 'close') host.leadership.close().catch(() => {})
        if (what.process === 'start' && hosts.length < 6) {
          hosts.push(new Host(`host-${hosts.length}`, time, server, SILENT, rate()))
        }
      }
      for (const host of hosts) {
        host.network = 'fine'
        host.latency = 5
      }
      hosts.push(new Host('last', time, server, SILENT, rate()))
      await time.advance(90_000)
      assert.equal(leaders(hosts).length, 1, JSON.stringify(server.lease))
    }),
    { numRuns: 40 },
  )
  assert.ok(led > 300, `the property saw leaders only ${led} times`)
})
