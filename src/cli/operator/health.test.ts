import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Health, type HealthSource, STUCK_AFTER } from './health.ts'

interface World {
  states: ReturnType<HealthSource['states']>
  problems: string[]
  phase: ReturnType<HealthSource['phase']>
  overdue: boolean
  now: number
}

function make(
  t: { after(work: () => void): void },
  world: Partial<World> = {},
): { world: World; health: Health } {
  const whole: World = { states: [], problems: [], phase: 'working', overdue: false, now: 0, ...world }
  const health = new Health(
    {
      states: () => whole.states,
      problems: () => whole.problems,
      phase: () => whole.phase,
      overdue: () => whole.overdue,
    },
    () => whole.now,
  )
  t.after(() => health.close())
  return { world: whole, health }
}

test('ready is who works or could at once; all that is missing is listed', (t) => {
  const warm = { name: 'pods', synced: true }
  const cases: [Partial<World>, string | undefined][] = [
    [{ states: [warm], phase: 'working' }, undefined],
    [{ states: [warm], phase: 'standing by' }, undefined],
    [{ states: [warm], phase: 'starting' }, 'is starting'],
    [{ states: [warm], phase: 'stopping' }, 'is stopping'],
    [
      {
        phase: 'starting',
        states: [
          warm,
          { name: 'secrets', synced: false },
          { name: 'onionservices', synced: false, error: '404: is the CRD installed?' },
        ],
      },
      'secrets: is being listed\nonionservices: 404: is the CRD installed?',
    ],
    [{ states: [{ ...warm, error: '403: pods is forbidden' }] }, 'pods: 403: pods is forbidden'],
    [{ problems: ['no permission to get leases'], phase: 'standing by' }, 'no permission to get leases'],
    [
      { states: Array.from({ length: 22 }, (_, index) => ({ name: `n${index}`, synced: false })) },
      `${Array.from({ length: 20 }, (_, index) => `n${index}: is being listed`).join('\n')}\nand 2 more`,
    ],
  ]
  for (const [world, answer] of cases) assert.equal(make(t, world).health.ready(), answer)
})

test('a loop that does not turn is not alive, and is again once it turns', (t) => {
  const { world, health } = make(t)
  world.now += STUCK_AFTER
  assert.equal(health.live(), undefined)
  world.now += 1_000
  assert.equal(health.live(), 'the event loop has not turned for 31 s')
  health.beat()
  assert.equal(health.live(), undefined)
})

test('controllers that outlive their Lease are not alive', (t) => {
  const { world, health } = make(t)
  world.overdue = true
  const beat = (): string | undefined => {
    world.now += 1_000
    health.beat()
    return health.live()
  }
  for (let second = 0; second < 6; second++) assert.equal(beat(), undefined)
  assert.match(beat() ?? '', /renewal of the Lease is overdue/)
  world.overdue = false
  assert.equal(beat(), undefined)
})
