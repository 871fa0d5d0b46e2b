import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Plan } from '../../controller/plan.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import { BRIDGES_FILE, type BridgeState } from '../contract.ts'
import { BRIDGES_STATE_FILE, observeBridges } from './bridge-seed.ts'
import type { Observed } from './observed.ts'
import { plan } from './plan.ts'
import { condition, DAEMON, NOW, observed, reportOf, topology } from './plan-fixture.ts'

const fingerprint = (n: number): string => n.toString(16).toUpperCase().padStart(40, '0')
const line = (n: number): string =>
  `obfs4 192.0.2.${n}:443 ${fingerprint(n)} cert=${'A'.repeat(70)} iat-mode=0`
const URL = 'https://bridges.example/'

type Spec = NonNullable<NonNullable<TorDaemon['spec']>['bridges']>

function daemon(bridges: Spec): TorDaemon {
  return { ...DAEMON, spec: { bridges } }
}

/** @param seed text of the Secret; undefined: there is none; null: not looked at yet */
function world(
  spec: Spec,
  {
    seed,
    state,
    health = [],
    fetched,
  }: {
    seed?: string | null
    state?: string
    health?: [number, BridgeState['state'], number?][]
    fetched?: NonNullable<Parameters<typeof observeBridges>[3]>
  } = {},
): Observed {
  const object = daemon(spec)
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const secret = (data: Record<string, string>) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's' },
    data,
  })
  const named =
    seed === null ? undefined : seed === undefined ? {} : { object: secret({ bridges: base64(seed) }) }
  const keys = state === undefined ? undefined : secret({ [BRIDGES_STATE_FILE]: base64(state) })
  const bridges = observeBridges(object, named as never, keys as never, fetched)!
  const report = {
    ...reportOf([]),
    bridges: health.map(([n, is, since = NOW]) => ({ fingerprint: fingerprint(n), state: is, since })),
  }
  return observed({ object, bridges, view: { report } as never })
}

function files(result: Plan): { text: string; state: string } {
  const data = result.apply.find(({ kind }) => kind === 'Secret')?.data as Record<string, string>
  const text = (name: string): string => Buffer.from(data[name]!, 'base64').toString()
  return { text: text(BRIDGES_FILE), state: text(BRIDGES_STATE_FILE) }
}

const SEED: Spec = { seed: { name: 's' } }

describe('bridges of a daemon', () => {
  it('hand the seed to the agent as a file, and to nobody else', () => {
    const spec = { ...SEED, minHealthy: 1 }
    const input = world(spec, {
      seed: `${line(2)}\n# mine\n${line(1)}\n`,
      health: [
        [1, 'healthy'],
        [2, 'dead'],
      ],
    })
    const result = plan(input, NOW)
    assert.equal(files(result).text.trim(), [line(1), line(2)].join('\n'))
    const written = [...result.apply, ...result.create].filter(({ kind }) => kind === 'Secret')
    assert.deepEqual(
      written.map(({ metadata }) => metadata.name),
      ['tor-keys'],
      'the seed is its user’s',
    )
    assert.deepEqual((topology(result) as unknown as { daemon: object }).daemon, {
      name: 'tor',
      namespace: 'default',
      logLevel: 'notice',
      options: {},
      bridges: { transport: 'obfs4' },
    })
    const status = result.status.find(({ ref }) => ref.kind === 'TorDaemon')!
    assert.deepEqual(
      (status.status.bridges as { fingerprint: string; seed: boolean; state: string }[]).map((one) => [
        one.fingerprint,
        one.seed,
        one.state,
      ]),
      [
        [fingerprint(1), true, 'healthy'],
        [fingerprint(2), true, 'dead'],
      ],
    )
    assert.equal(condition(result, 'tor', 'BridgesHealthy').status, 'True')
    const told = JSON.stringify([result.status, result.notes, result.calls, topology(result)])
    assert.doesNotMatch(told, /192\.0\.2|cert=/)
  })

  for (const [what, options, reason, status] of [
    ['no Secret', {}, 'BridgeSeedNotFound', 'False'],
    ['a Secret that was not looked at', { seed: null }, 'Pending', 'Unknown'],
    ['an empty Secret', { seed: '' }, 'NoBridges', 'False'],
    ['nothing but faults', { seed: 'obfs4 bridge.example:443' }, 'NoBridges', 'False'],
    ['all dead', { seed: line(1), health: [[1, 'dead']] }, 'BridgesDead', 'False'],
    ['none tried', { seed: line(1) }, 'Pending', 'Unknown'],
    [
      'too few',
      {
        seed: `${line(1)}\n${line(2)}`,
        health: [
          [1, 'healthy'],
          [2, 'dead'],
        ],
      },
      'TooFewBridges',
      'False',
    ],
  ] as const) {
    it(`say what is wrong: ${what}`, () => {
      const result = plan(world(SEED, options as never), NOW)
      const found = condition(result, 'tor', 'BridgesHealthy')
      assert.deepEqual([found.reason, found.status], [reason, status], found.message)
    })
  }

  it('keep the known set while the seed cannot be read, and name bad lines by their numbers alone', () => {
    const first = plan(world(SEED, { seed: `${line(1)}\nobfs4 x\n` }), NOW)
    const { state, text } = files(first)
    const gone = plan(world(SEED, { state }), NOW)
    assert.equal(files(gone).text, text)
    assert.match(condition(gone, 'tor', 'BridgesHealthy').message, /does not exist.*1 known ones/)
    const healthy = world(
      { ...SEED, minHealthy: 1 },
      { seed: `${line(1)}\nobfs4 x\n`, health: [[1, 'healthy']] },
    )
    assert.match(condition(plan(healthy, NOW), 'tor', 'BridgesHealthy').message, /line 2 of the seed/)
  })

  it('fetch when too few are left, note the wish first, and take the answer in once', () => {
    const spec: Spec = { ...SEED, source: { https: { url: URL } } }
    const health: [number, BridgeState['state'], number?][] = [[1, 'healthy']]
    const wish = plan(world(spec, { seed: line(1), health }), NOW)
    const [call] = wish.calls
    assert.equal(call?.name, 'tor.fetch-bridges')
    assert.deepEqual(call?.with, {
      daemon: 'default/tor',
      source: URL,
      asked: String(NOW),
      transport: 'obfs4',
    })
    const { state } = files(wish)
    assert.deepEqual(plan(world(spec, { seed: line(1), health, state }), NOW + 1000).calls, [])
    const bridges = [2, 3].map((n) => ({
      line: line(n),
      transport: 'obfs4',
      host: `192.0.2.${n}`,
      port: 443,
      fingerprint: fingerprint(n),
    }))
    const fetched = { asked: NOW, bridges }
    const filled = plan(world(spec, { seed: line(1), health, state, fetched }), NOW + 1000)
    assert.equal(files(filled).text.trim().split('\n').length, 3)
    assert.deepEqual(
      filled.notes.filter(({ reason }) => reason === 'BridgesAdded').map(({ message }) => message),
      [`bridges were fetched and are used: ${fingerprint(2)}, ${fingerprint(3)}`],
    )
    const again = plan(
      world(spec, { seed: line(1), health, state: files(filled).state, fetched }),
      NOW + 2000,
    )
    assert.deepEqual(
      again.notes.filter(({ reason }) => reason === 'BridgesAdded'),
      [],
    )
  })

  it('take a fetched one out after its grace, never one of the seed', () => {
    const spec: Spec = { ...SEED, source: { https: { url: URL } }, evictGraceSeconds: 60 }
    const seed = line(1)
    const { state } = files(plan(world(spec, { seed }), NOW))
    const old = NOW - 61_000
    const two = {
      line: line(2),
      transport: 'obfs4',
      host: '192.0.2.2',
      port: 443,
      fingerprint: fingerprint(2),
    }
    const fetched = { asked: NOW, bridges: [two] }
    const both = files(plan(world(spec, { seed, state, fetched, health: [[1, 'healthy']] }), NOW))
    assert.match(both.text, /192\.0\.2\.2/)
    const health = (one: BridgeState['state'], other: BridgeState['state']) =>
      plan(
        world(spec, {
          seed,
          state: both.state,
          health: [
            [1, one, old],
            [2, other, old],
          ],
        }),
        NOW,
      )
    const evicted = health('healthy', 'dead')
    assert.doesNotMatch(files(evicted).text, /192\.0\.2\.2:/)
    assert.ok(evicted.notes.some(({ reason }) => reason === 'BridgesEvicted'))
    assert.match(files(health('dead', 'healthy')).text, /192\.0\.2\.1:/)
    // Nothing is healthy: it is our own network.
    assert.match(files(health('dead', 'dead')).text, /192\.0\.2\.2:/)
  })
})
