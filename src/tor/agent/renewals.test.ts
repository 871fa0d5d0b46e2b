import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SILENT } from '../../core/logger.ts'
import type { OnionPlan } from '../contract.ts'
import { shapeOf } from './onion-shape.ts'
import { Renewals } from './renewals.ts'

const DAEMON = { name: 'tor', namespace: 'shop', logLevel: 'notice', options: {} }
const onion = (renewal?: number): OnionPlan => ({
  name: 'web',
  address: `${'a'.repeat(55)}d`,
  since: 0,
  ports: [],
  ...(renewal === undefined ? {} : { renewal }),
})

function start(): { renewals: Renewals; done: string[] } {
  const done: string[] = []
  const control = {
    command: async (line: string) => {
      done.push(line)
      return { status: 250, lines: [] } as never
    },
    signal: async (name: string) => {
      done.push(name)
    },
  }
  const renewals = new Renewals({ control: () => control, restart: () => done.push('restart'), log: SILENT })
  return { renewals, done }
}

test('an onion is another to tor each time that its number grows, and only then', () => {
  const { renewals } = start()
  const shapes = [undefined, 1, 1, 3, 2, undefined, 3, 4].map((number) =>
    shapeOf(renewals.onions([onion(number)])[0]!),
  )
  assert.deepEqual(
    shapes.map((shape, index) => index > 0 && shape !== shapes[index - 1]),
    [false, true, false, true, false, false, false, true],
  )
})

test('one that went and comes again is added once, by whatever number', () => {
  const { renewals } = start()
  renewals.onions([onion(5)])
  renewals.onions([])
  assert.equal(renewals.onions([onion(2)])[0]!.renewal, 2)
})

test('what a fresh agent finds asks for nothing; what grows later does, once', async () => {
  const { renewals, done } = start()
  renewals.daemon({ ...DAEMON, restarts: 4, freshCircuits: 2 })
  assert.deepEqual(done, [])
  renewals.daemon({ ...DAEMON, restarts: 4, freshCircuits: 3 })
  await new Promise((turn) => setImmediate(turn))
  assert.deepEqual(done, ['DROPTIMEOUTS', 'NEWNYM'])
  renewals.daemon({ ...DAEMON })
  renewals.daemon({ ...DAEMON, restarts: 4, freshCircuits: 3 })
  assert.equal(done.length, 2)
  renewals.daemon({ ...DAEMON, restarts: 5, freshCircuits: 4 })
  await new Promise((turn) => setImmediate(turn))
  // A tor that starts anew has forgotten all that.
  assert.deepEqual(done.slice(2), ['restart'])
})

test('a tor that refuses to forget is left as it is', async () => {
  const control = {
    command: () => Promise.reject(new Error('no')),
    signal: () => Promise.reject(new Error('no')),
  }
  const renewals = new Renewals({ control: () => control, restart() {}, log: SILENT })
  renewals.daemon({ ...DAEMON })
  renewals.daemon({ ...DAEMON, freshCircuits: 1 })
  await new Promise((turn) => setImmediate(turn))
})
