import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:net'
import { test } from 'node:test'
import type { Bridge } from '../../testbed/tor-network/bridge.ts'
import { freePorts } from '../../testbed/tor-network/ports.ts'
import { sharedTorNetwork } from '../../testbed/tor-network/shared.ts'
import { bridgeStage, skip } from './bridge-stage.ts'
import { type BridgedAgent, startBridgedAgent, type Watch } from './bridged-agent.ts'
import { webServer } from './up.ts'

const network = await sharedTorNetwork()
const { bridge, visitedAnew } = bridgeStage(network)

/** Accepts, and never says a word. */
async function silent(): Promise<{ port: number; server: Server }> {
  const server = createServer((socket) => socket.on('error', () => {}).resume())
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return { port: (server.address() as { port: number }).port, server }
}

const only = async (watch: Watch, allowed: readonly string[]): Promise<void> => {
  const others = [...watch.met, ...(await watch.connections())].filter((one) => !allowed.includes(one))
  assert.deepEqual(others, [], 'connected to what is no bridge of ours')
}

/** Also with the last directory: a visitor that asks one with an older descriptor remembers for two minutes that it leads nowhere. */
const published = (it: BridgedAgent): Promise<true> =>
  it.until('the onion to be published', () => {
    const { state, uploadsAsked, uploadsAcknowledged } = it.report().onions[0]!
    return (state === 'published' && uploadsAsked >= 8 && uploadsAcknowledged >= uploadsAsked) || undefined
  })

test('each kind of bridge is told as what it is, and an onion is published over the one that is good', {
  skip,
}, async () => {
  using server = await webServer('over a bridge')
  const [good, otherRelay, otherSecret] = await Promise.all(['good', 'relay', 'secret'].map(bridge))
  const mute = await silent()
  const [closed] = await freePorts(1)
  const secret = /cert=.*/.exec(good!.line)![0]
  const dead = {
    Unreachable: `obfs4 127.0.0.1:${closed} ${'A'.repeat(40)} ${secret}`,
    FingerprintMismatch: otherRelay!.line.replace(otherRelay!.fingerprint, 'B'.repeat(40)),
    NoAnswer: otherSecret!.line.replace(/cert=.*/, secret),
  }
  const mutes = `obfs4 127.0.0.1:${mute.port} ${'D'.repeat(40)} ${secret}`
  const lines = [...Object.values(dead), mutes, good!.line]
  const fingerprints = lines.map((line) => line.split(' ')[2]!)
  try {
    await using it = await startBridgedAgent(network.options, server.port)
    await it.until('no bridges', () => it.report().tor.reason === 'NoBridges')
    const watch = await it.watch()
    assert.match(it.report().tor.message ?? '', /the keys hold no bridges\.txt/)
    it.bridges('obfs4 bridge.example.org:443', '<html>', `obfs4 192.0.2.1:443 ABC ${secret}`)
    await it.until('no usable one', () => /3 lines cannot be used/.test(it.report().tor.message ?? ''))
    assert.deepEqual([await watch.connections(), [...watch.met], it.report().bridges], [[], [], []])

    it.bridges(...lines, 'obfs4 bridge.example.org:443')
    await it.until('the good one', () => it.state(good!.fingerprint) === 'healthy')
    assert.match(it.report().rejected ?? '', /1 lines of bridges\.txt are no bridges/)
    await published(it)
    assert.deepEqual([it.report().tor.bootstrapped, it.report().tor.reason], [true, undefined])
    await visitedAnew(it.host, 'over a bridge')
    for (const [reason, line] of Object.entries(dead)) {
      const fingerprint = line.split(' ')[2]!
      await it.until(`${fingerprint} ${reason}`, () => it.state(fingerprint) === `dead ${reason}`)
    }
    await it.until('the silent one', () => it.state('D'.repeat(40)) === 'dead NoAnswer')
    assert.equal(it.state(good!.fingerprint), 'healthy')
    const series = (await it.scrape()).match(/^tor_agent_bridge_state\{.*$/gm)?.sort()
    assert.deepEqual(
      series,
      fingerprints
        .map((one) => `tor_agent_bridge_state{fingerprint="${one}"} ${one === good!.fingerprint ? 1 : -1}`)
        .sort(),
    )

    // The same bridges in another order, and a topology that says nothing new of them.
    const before = await watch.introductions()
    assert.ok(before.length > 0)
    watch.changes.length = 0
    it.bridges(...lines.toReversed())
    await it.until('the file to be read', () => !/ lines of /.test(it.report().rejected ?? ''))
    const { applied } = it.report()
    it.topology({ bridges: { transport: 'obfs4' }, memoryLimit: 2 ** 30 })
    await it.until('the topology', () => it.report().applied !== applied)
    await it.until('its one change', () => watch.changes.length > 0)
    assert.deepEqual(watch.changes, [['MaxMemInQueues']])
    assert.deepEqual(await watch.introductions(), before)

    await only(watch, fingerprints)
    const told = [it.log(), JSON.stringify(it.report()), await it.scrape()].join('\n')
    assert.match(told, /Proxy Client: unable to connect OR connection/)
    for (const line of lines) {
      const [, address, , cert] = line.split(' ') as [string, string, string, string]
      assert.ok(!told.includes(address), `${address} is told`)
      assert.ok(!told.includes(cert.slice(5, 30)), 'a certificate is told')
    }
  } finally {
    mute.server.close()
  }
})

test('bridges die and come back, and so does tor: nothing is ever reached but by a bridge', {
  skip,
}, async () => {
  using server = await webServer('still here')
  const [a, b] = (await Promise.all(['a', 'b'].map(bridge))) as [Bridge, Bridge]
  const allowed = [a.fingerprint, b.fingerprint]
  await using it = await startBridgedAgent(network.options, server.port)
  await it.until('no bridges', () => it.report().tor.reason === 'NoBridges')
  let watch = await it.watch()
  const is = (one: Bridge, state: string): Promise<true> =>
    it.until(
      `${one.fingerprint} to be ${state}`,
      () => it.state(one.fingerprint) === state || undefined,
      90_000,
    )

  it.bridges(a.line)
  await is(a, 'healthy')
  await published(it)
  it.bridges(a.line, b.line)
  await is(b, 'healthy')
  await visitedAnew(it.host, 'still here')

  // It falls silent, and its connection stays open.
  a.freeze()
  await is(a, 'dead NoAnswer')
  assert.equal(it.state(b.fingerprint), 'healthy')
  a.thaw()
  await is(a, 'healthy')

  await a.stop()
  await is(a, 'dead Unreachable')
  await visitedAnew(it.host, 'still here')
  await b.stop()
  await is(b, 'dead Unreachable')
  await only(watch, allowed)
  await Promise.all([a.start(), b.start()])
  await it.until('one of them', () => allowed.some((one) => it.state(one) === 'healthy'), 90_000)
  await it.until('an introduction', async () => (await watch.introductions()).length > 0)
  await published(it)
  await visitedAnew(it.host, 'still here')
  await only(watch, allowed)

  const pid = it.report().tor.pid!
  process.kill(pid, 'SIGKILL')
  await it.until('another tor', () => it.report().tor.starts === 2 && it.report().tor.running)
  watch = await it.watch()
  await it.until('one of them again', () => allowed.some((one) => it.state(one) === 'healthy'))
  await published(it)
  await visitedAnew(it.host, 'still here')
  await only(watch, allowed)

  // Deliberately without bridges.
  it.topology({})
  await it.until('a relay', () => [...watch.met].some((one) => !allowed.includes(one)))
  assert.equal(it.report().bridges, undefined)
  await visitedAnew(it.host, 'still here')

  // And with them again: what is connected directly ends.
  it.topology()
  await is(a, 'healthy')
  await it.until('no relay', async () => (await watch.connections()).every((one) => allowed.includes(one)))
  await visitedAnew(it.host, 'still here')
})
