import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { SILENT } from '../../core/logger.ts'
import { Departure, type DepartureOptions, visitors } from './departure.ts'

const JOINED = '3 BUILT $AA~a,$BB~b PURPOSE=HS_SERVICE_REND HS_STATE=HSSR_JOINED REND_QUERY=one'
const COMING = '4 EXTENDED $AA~a PURPOSE=HS_SERVICE_REND HS_STATE=HSSR_CONNECTING REND_QUERY=two'
const OTHERS = [
  '1 BUILT $AA~a,$BB~b PURPOSE=HS_SERVICE_INTRO HS_STATE=HSSI_ESTABLISHED REND_QUERY=three',
  '5 BUILT $AA~a BUILD_FLAGS=NEED_CAPACITY PURPOSE=HS_SERVICE_HSDIR',
  '6 BUILT $AA~a PURPOSE=HS_CLIENT_INTRO HS_STATE=HSCI_CONNECTING REND_QUERY=four',
  '7 CLOSED $AA~a PURPOSE=HS_SERVICE_REND HS_STATE=HSSR_CONNECTING REND_QUERY=five',
]

test('reads from the circuits who is there, and who is on the way', () => {
  const all = [...OTHERS, JOINED, COMING].join('\n')
  assert.deepEqual(visitors(all), { visited: new Set(['one', 'two']), connecting: new Set(['two']) })
  assert.deepEqual(visitors(''), { visited: new Set(), connecting: new Set() })
})

interface World {
  streams: number
  circuits: string[] | undefined
  /** What was given to each `withdraw`. */
  withdrawn: string[]
  /** What was held at the last one. */
  held: string
  silent: boolean
  departure: Departure
  over: boolean
}

function depart(more: Partial<DepartureOptions> = {}): World {
  const world: World = {
    streams: 0,
    circuits: [...OTHERS, JOINED],
    withdrawn: [],
    held: '',
    silent: false,
    over: false,
    departure: new Departure({
      lingerMs: 600_000,
      quietMs: 30,
      sweepMs: 5,
      log: SILENT,
      streams: () => world.streams,
      circuits: async () => (world.silent ? new Promise(() => {}) : world.circuits?.join('\n')),
      withdraw: async (visited, held) => {
        world.withdrawn.push([...visited].join(' '))
        world.held = [...held].join(' ')
        return held.size
      },
      ...more,
    }),
  }
  return world
}

function run(world: World): Promise<void> {
  return world.departure.run().then(() => {
    world.over = true
  })
}

/** Enough for a look that nothing holds back: the fake tor answers at once. */
async function turns(): Promise<void> {
  for (let i = 0; i < 20; i += 1) await new Promise((done) => setImmediate(done))
}

/** Many looks go by; that nothing happened in them is seen from the looks, not from a clock. */
async function looks(world: World, count: number): Promise<void> {
  const before = world.withdrawn.length
  const end = performance.now() + 10_000
  while (world.withdrawn.length < before + count) {
    assert.ok(
      performance.now() < end,
      `${count} looks did not come about; withdrawn: ${world.withdrawn.join(', ')}`,
    )
    await pause(1)
  }
}

test('serves on untouched until it is retired, then turns newcomers away and waits for the last stream', async () => {
  const world = depart()
  const ran = run(world)
  world.streams = 1
  await turns()
  assert.deepEqual(world.withdrawn, [])
  world.departure.retire()
  await looks(world, 40)
  assert.equal(world.over, false)
  assert.deepEqual([...new Set(world.withdrawn)], ['one'])
  world.streams = 0
  world.circuits = [COMING]
  await looks(world, 20)
  assert.equal(world.over, false, 'somebody is on the way')
  world.circuits = []
  await ran
})

test('a retirement is remembered, and alone it ends nothing', async () => {
  const world = depart()
  world.departure.retire()
  await turns()
  assert.deepEqual([world.over, world.withdrawn], [false, []])
  await run(world)
})

test('the time to linger ends by itself, also with a stream that never does and a tor that is silent', async () => {
  for (const silent of [false, true]) {
    const world = depart({ lingerMs: 20, drainMs: 20 })
    world.streams = 1
    world.silent = silent
    await run(world)
    assert.equal(world.withdrawn.length > 0, !silent)
  }
})

test('it can be ended at once', async () => {
  const world = depart()
  const ran = run(world)
  world.departure.end()
  await ran
  assert.deepEqual(world.withdrawn, [])
})

test('without a control connection the streams decide', async () => {
  const world = depart()
  world.circuits = undefined
  world.departure.retire()
  await run(world)
})

test('who is on the way is waited for before an onion is withdrawn, but not for ever', async () => {
  const world = depart({ holdMs: 200 })
  world.circuits = [COMING]
  world.departure.retire()
  const over = run(world)
  await looks(world, 2)
  assert.match(world.held, /^two$/)
  const began = performance.now()
  while (world.held !== '') {
    assert.ok(performance.now() - began < 20_000, 'it is held still')
    await looks(world, 1)
  }
  world.departure.end()
  await over
})
