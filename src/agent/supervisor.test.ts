import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Supervisor } from './supervisor.ts'

async function until(what: string, check: () => boolean, limitMs = 10_000): Promise<void> {
  const end = performance.now() + limitMs
  while (!check()) {
    assert.ok(performance.now() < end, `not within ${limitMs} ms: ${what}`)
    await pause(10)
  }
}

const FAST = { minMs: 5, maxMs: 20, resetAfterMs: 60_000 }

test('starts a child again when it ends, reads its lines, and ends it', async () => {
  const lines: string[] = []
  const exits: (number | null)[] = []
  const supervisor = new Supervisor({
    prepare: () => ({ command: '/bin/sh', args: ['-c', 'echo up; echo also >&2; exit 3'] }),
    onLine: (line) => lines.push(line),
    onExit: ({ code }) => exits.push(code),
    backoff: FAST,
  })
  supervisor.start()
  await until('three starts', () => supervisor.starts >= 3)
  await supervisor.stop()
  const { starts } = supervisor
  assert.ok(lines.includes('up') && lines.includes('also'))
  assert.equal(exits[0], 3)
  await pause(60)
  assert.equal(supervisor.starts, starts, 'it is not started again after stop')
})

test('the process id is the one of the command itself', async () => {
  let said = ''
  const supervisor = new Supervisor({
    prepare: () => ({ command: '/bin/sh', args: ['-c', 'echo $$; exec sleep 60'] }),
    onLine: (line) => {
      said = line
    },
    backoff: FAST,
  })
  supervisor.start()
  await until('its first line', () => said !== '')
  assert.equal(said, String(supervisor.pid))
  await supervisor.stop()
  assert.equal(supervisor.pid, undefined)
})

test('a failing preparation and a missing program are told and tried again', async () => {
  const failures: unknown[] = []
  let turn = 0
  const supervisor = new Supervisor({
    prepare: () => {
      turn += 1
      if (turn < 3) throw new Error('not yet')
      return { command: '/bin/sleep', args: ['60'] }
    },
    onFailure: (error) => failures.push(error),
    backoff: FAST,
  })
  supervisor.start()
  await until('the start', () => supervisor.pid !== undefined)
  assert.equal(failures.length, 2)
  await supervisor.stop()
})

test('a child that ignores SIGTERM is killed after the grace', async () => {
  let ready = false
  let signal: string | null = null
  const supervisor = new Supervisor({
    prepare: () => ({
      command: '/bin/sh',
      args: ['-c', 'trap "" TERM; echo ready; while :; do sleep 0.05; done'],
    }),
    onLine: () => {
      ready = true
    },
    onExit: (exit) => {
      signal = exit.signal
    },
    backoff: FAST,
  })
  supervisor.start()
  await until('its trap', () => ready)
  await supervisor.stop(50)
  assert.equal(signal, 'SIGKILL')
})
