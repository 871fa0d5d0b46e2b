import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '../../core/logger.ts'
import { BRIDGES_FILE } from '../contract.ts'
import type { ControlClient } from '../control/client.ts'
import { startTestTor } from '../control/testing-tor.ts'
import { Bridges, type BridgesOptions } from './bridges.ts'

const skip = existsSync('/usr/bin/tor') ? false : 'tor is not installed: apt-get install tor'

/** tor never comes to start it here: the network is off, or leads nowhere. */
const programs = mkdtempSync(join(tmpdir(), 'tb-'))
writeFileSync(join(programs, 'obfs4proxy'), '#!/bin/sh\n', { mode: 0o755 })
after(() => rmSync(programs, { recursive: true }))

/** A network of one authority that is not there, so that nothing is contacted. */
const NOWHERE = `DirAuthority nowhere orport=1 no-v2 v3ident=${'A'.repeat(40)} 127.0.0.1:1 ${'B'.repeat(40)}`
const PLUGIN = ['ClientTransportPlugin', `obfs4 exec ${programs}/obfs4proxy`]

const fingerprint = (n: number): string => String(n).repeat(40)
const line = (n: number, more = ''): string =>
  `obfs4 192.0.2.${n}:443 ${fingerprint(n)} cert=${`Secret${n}${more}`.padEnd(70, 'x')} iat-mode=0`
const file = (...lines: string[]): Map<string, Buffer> =>
  new Map([[BRIDGES_FILE, Buffer.from(lines.map((one) => `${one}\n`).join(''))]])
const up = (n: number) => ({
  type: 'GUARD' as const,
  kind: 'ENTRY',
  fingerprint: fingerprint(n),
  status: 'UP',
})

interface Stage extends AsyncDisposable {
  bridges: Bridges
  /** Every SETCONF that was sent. */
  sent: string[][][]
  control: ControlClient
  log: string[]
  /** The clock of the bridges, in milliseconds. */
  clock: { now: number }
  attach(): Promise<void>
  until(what: string, look: () => boolean): Promise<void>
}

async function stage(more: Partial<BridgesOptions> = {}, torrc: string[] = []): Promise<Stage> {
  const tor = await startTestTor(() => [NOWHERE, ...torrc])
  const client = await tor.client()
  const sent: string[][][] = []
  const log: string[] = []
  const clock = { now: 1_000 }
  const write = (fields: object, message?: string): void => {
    log.push(`${message} ${JSON.stringify(fields)}`)
  }
  const logger = Object.fromEntries(
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal'].map((level) => [level, write]),
  ) as unknown as Logger
  const bridges = new Bridges({
    log: logger,
    network: false,
    programs,
    onChange: () => {},
    now: () => clock.now,
    ...more,
  })
  const control = {
    getConf: (...names: string[]) => client.getConf(...names),
    getInfo: (...keys: string[]) => client.getInfo(...keys),
    setConf: (entries: readonly (readonly [string, string | undefined])[]) => {
      sent.push(entries.map(([name, value]) => (value === undefined ? [name] : [name, value])))
      return client.setConf(entries)
    },
  }
  return {
    bridges,
    sent,
    control: client,
    log,
    clock,
    attach: () => bridges.attach(control),
    async until(what, look) {
      for (const end = Date.now() + 20_000; !look(); await pause(5)) {
        const seen = JSON.stringify([sent, bridges.states, bridges.problem, bridges.rejected, log], null, 1)
        if (Date.now() > end) assert.fail(`${what} did not come to pass: ${seen}`)
      }
    },
    async [Symbol.asyncDispose]() {
      bridges.close()
      await client.close()
      await tor[Symbol.asyncDispose]()
    },
  }
}

test('the network goes on in the same command as the bridges, and never without them', { skip }, async () => {
  await using it = await stage({ network: true })
  it.bridges.want({ transport: 'obfs4' })
  await it.attach()
  assert.equal(it.bridges.problem?.reason, 'NoBridges')
  assert.equal(it.bridges.states?.length, 0)
  for (const unusable of [
    '',
    'obfs4 bridge.example.org:443',
    line(1).replace('obfs4', 'snowflake'),
    `obfs4 192.0.2.1:443 cert=A`,
  ]) {
    it.bridges.use(file(unusable))
    await it.attach()
    assert.equal(it.bridges.problem?.reason, 'NoBridges', unusable)
  }
  assert.deepEqual(it.sent, [])
  it.bridges.use(file(line(1), 'obfs4 192.0.2.9:443 ABC', line(2)))
  await it.until('the bridges', () => it.bridges.states?.length === 2)
  assert.deepEqual(it.sent, [
    [PLUGIN, ['UseBridges', '1'], ['Bridge', line(1)], ['Bridge', line(2)], ['DisableNetwork', '0']],
  ])
  await it.until('tor to take them', () => it.bridges.problem === undefined)
  assert.match(it.bridges.rejected.join(), /^1 lines of bridges\.txt are no bridges/)
  assert.deepEqual(
    it.bridges.states?.map((one) => [one.fingerprint, one.state]),
    [1, 2].map((n) => [fingerprint(n), 'unknown']),
  )
})

test('turned on they end what is connected directly first; turned off, deliberately, tor is direct', {
  skip,
}, async () => {
  await using it = await stage({ network: true })
  it.bridges.want(undefined)
  await it.attach()
  assert.deepEqual(it.sent.splice(0), [[['DisableNetwork', '0']]])
  assert.equal(it.bridges.states, undefined)
  // The keys come later than the topology.
  it.bridges.want({ transport: 'obfs4' })
  await it.until('no bridges', () => it.bridges.problem?.reason === 'NoBridges')
  assert.deepEqual(it.sent.splice(0), [[['DisableNetwork', '1']]])
  it.bridges.want(undefined)
  await it.until('direct again', () => it.bridges.problem === undefined)
  it.bridges.use(file(line(1)))
  it.bridges.want({ transport: 'obfs4' })
  await it.until('the bridge', () => it.bridges.states?.length === 1)
  assert.deepEqual(it.sent.splice(0), [
    [['DisableNetwork', '0']],
    [['DisableNetwork', '1']],
    [PLUGIN, ['UseBridges', '1'], ['Bridge', line(1)], ['DisableNetwork', '0']],
  ])
  it.bridges.want(undefined)
  await it.until('tor without bridges', () => it.sent.length === 1 && it.bridges.states === undefined)
  await it.attach()
  assert.deepEqual(it.sent, [[['UseBridges', '0'], ['Bridge'], ['ClientTransportPlugin']]])
  const { UseBridges, Bridge, DisableNetwork } = await it.control.getConf(
    'UseBridges',
    'Bridge',
    'DisableNetwork',
  )
  assert.deepEqual([UseBridges, Bridge, DisableNetwork], [['0'], [], ['0']])
})

test('another order, a line twice, the same topology, or another connection: not one SETCONF', {
  skip,
}, async () => {
  await using it = await stage()
  it.bridges.want({ transport: 'obfs4' })
  it.bridges.use(file(line(2), line(1)))
  await it.attach()
  assert.deepEqual(it.sent.splice(0), [
    [PLUGIN, ['UseBridges', '1'], ['Bridge', line(1)], ['Bridge', line(2)]],
  ])
  it.bridges.event(up(1))
  for (const lines of [
    [line(1), line(2)],
    [line(2), line(1), '', line(2)],
  ]) {
    it.bridges.use(file(...lines))
    it.bridges.want({ transport: 'obfs4' })
    it.bridges.detach(false)
    await it.attach()
  }
  assert.deepEqual(it.sent, [])
  assert.equal(it.bridges.states?.[0]?.state, 'healthy')
})

test('a set that works is replaced once a minute; at once when nothing of it works or is left', {
  skip,
}, async () => {
  await using it = await stage()
  const inForce = (): string => (it.bridges.states ?? []).map((one) => one.fingerprint[0]).join('')
  it.bridges.want({ transport: 'obfs4' })
  it.bridges.use(file(line(1)))
  await it.attach()
  assert.equal(inForce(), '1')
  // Nothing is known to work yet.
  it.bridges.use(file(line(1), line(2)))
  await it.until('the second set', () => inForce() === '12')
  it.bridges.event(up(1))
  it.bridges.use(file(line(1), line(3)))
  await it.attach()
  it.bridges.use(file(line(1), line(4)))
  await it.attach()
  assert.equal(inForce(), '12')
  it.clock.now += 60_000
  await it.attach()
  assert.equal(inForce(), '14')
  assert.equal(it.sent.length, 3)
  it.bridges.use(file(line(1), line(5)))
  await it.attach()
  assert.equal(inForce(), '14')
  it.bridges.event({ ...up(1), status: 'DOWN' })
  await it.until('the set that waited, since none works', () => inForce() === '15')
  assert.deepEqual(
    it.bridges.states?.map(({ state }) => state),
    ['dead', 'unknown'],
    'what is known of one that stays is kept',
  )
  it.bridges.event(up(1))
  it.bridges.use(file(line(6)))
  await it.until('a wholly other set', () => inForce() === '6')
  assert.equal(it.sent.length, 5)
})

test('a set that waits is applied when its time has come, by itself', { skip }, async () => {
  await using it = await stage({ everyMs: 300, now: () => performance.now() })
  it.bridges.want({ transport: 'obfs4' })
  it.bridges.use(file(line(1)))
  await it.attach()
  it.bridges.event(up(1))
  it.bridges.use(file(line(1), line(2)))
  await it.until('both', () => it.bridges.states?.length === 2)
  assert.equal(it.sent.length, 2)
})

test('what cannot be used leaves in force what was, and is told', { skip }, async () => {
  await using it = await stage()
  it.bridges.want({ transport: 'snowflake' })
  it.bridges.use(file(line(1)))
  await it.attach()
  assert.equal(it.bridges.problem?.reason, 'TransportMissing')
  assert.match(it.bridges.problem?.message ?? '', /no program for the transport snowflake.*lyrebird/)
  it.bridges.want({ transport: 'obfs4' })
  await it.until('the bridge', () => it.bridges.states?.length === 1)
  assert.deepEqual(it.bridges.rejected, [])
  for (const [change, says] of [
    [() => it.bridges.use(file()), /holds no bridge of the transport obfs4; the 1 bridges in force stay/],
    [() => it.bridges.use(new Map()), /the keys hold no bridges\.txt; the 1/],
    [() => it.bridges.want({ transport: 'snowflake' }), /snowflake.*; the 1 bridges/],
  ] as const) {
    change()
    await it.until(`${says}`, () => says.test(it.bridges.rejected.join()))
    assert.equal(it.bridges.problem, undefined)
  }
  // Another tor has nothing of it, and gets it again.
  await it.control.setConf([['UseBridges', '0']])
  it.bridges.event(up(1))
  it.bridges.detach(true)
  assert.equal(it.bridges.states?.[0]?.state, 'unknown')
  await it.attach()
  assert.equal(it.sent.length, 2)
  assert.deepEqual((await it.control.getConf('Bridge')).Bridge, [line(1)])
})

test('an outage is over when one works again after none did; a start is none', { skip }, async () => {
  let recovered = 0
  await using it = await stage({ onRecovered: () => recovered++ })
  it.bridges.want({ transport: 'obfs4' })
  it.bridges.use(file(line(1), line(2)))
  await it.attach()
  const down = (n: number) => ({ ...up(n), status: 'DOWN' })
  for (const event of [down(1), up(1), up(2), down(1), up(1), down(2), down(1)]) it.bridges.event(event)
  assert.equal(recovered, 0)
  it.bridges.event(up(2))
  it.bridges.event(up(1))
  assert.equal(recovered, 1)
  for (const event of [down(1), down(2)]) it.bridges.event(event)
  // It may end with another set than it began.
  it.bridges.use(file(line(3)))
  await it.until('the other set', () => it.bridges.states?.[0]?.fingerprint === fingerprint(3))
  it.bridges.event(up(3))
  assert.equal(recovered, 2)
  it.bridges.event(down(3))
  it.bridges.detach(true)
  await it.attach()
  it.bridges.event(up(3))
  assert.equal(recovered, 2, 'another tor')
})

test('what tor refuses keeps it off the network, and nobody is told a line', { skip }, async () => {
  await using it = await stage({ network: true }, [`EntryNodes ${fingerprint(9)}`])
  it.bridges.want({ transport: 'obfs4' })
  it.bridges.use(file(line(1)))
  await it.attach()
  assert.equal(it.bridges.problem?.reason, 'NetworkRefused')
  assert.match(it.bridges.rejected.join(), /UseBridges and EntryNodes/)
  it.bridges.want({ transport: 'obfs4' })
  it.bridges.use(file(line(1), ''))
  await it.attach()
  await it.control.resetConf('EntryNodes')
  await it.attach()
  assert.equal(it.bridges.problem, undefined)
  assert.deepEqual(it.bridges.rejected, [])
  assert.equal((await it.control.getConf('DisableNetwork')).DisableNetwork?.[0], '0')
  it.bridges.event({ ...up(1), status: 'DOWN' })
  const told = [...it.log, JSON.stringify([it.bridges.states, it.bridges.problem])].join('\n')
  assert.match(told, /bridge changed/)
  assert.doesNotMatch(told, /192\.0\.2|Secret|443/)
  assert.equal(
    it.bridges.redact(
      `Proxy Client: unable to connect with 192.0.2.1:443 ID=<none>, 192.0.2.10 cert=Secret1 x`,
    ),
    'Proxy Client: unable to connect with [bridge] ID=<none>, 192.0.2.10 cert=[redacted] x',
  )
})
