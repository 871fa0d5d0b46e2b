import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { SILENT } from '../../core/logger.ts'
import type { WatchedState, WatchPlan } from '../contract.ts'
import { Watch } from './watch.ts'

/** Looks through two SOCKS ports that answer as tor does: plainly at one, with more at the other. */

const ADDRESS = `${'a'.repeat(55)}d`
const plan = (name: string, more: Partial<WatchPlan> = {}): WatchPlan => ({
  namespace: 'shop',
  name,
  address: ADDRESS,
  port: 80,
  every: 10,
  ...more,
})

let base: string
let servers: Server[] = []
let watch: Watch | undefined
/** By port of the onion: the code that the port with more gives; 0 connects, and stays open. */
const answers = new Map<number, number>()

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), 'tw-'))
  answers.clear()
  servers = await Promise.all([port('socks', (code) => (code >= 0xf0 ? 4 : code)), port('x', (code) => code)])
})
afterEach(() => {
  watch?.close()
  for (const server of servers) server.close()
  rmSync(base, { recursive: true, force: true })
})

/** A SOCKS port on a unix socket, with replies as tor's: of 22 bytes. */
async function port(name: string, say: (code: number) => number): Promise<Server> {
  const server = createServer((socket) => {
    let step = 0
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      step += 1
      if (step === 1) socket.write(Buffer.from([5, 2]))
      else if (step === 2) socket.write(Buffer.from([1, 0]))
      else if (step === 3) {
        const code = say(answers.get(chunk.readUInt16BE(chunk.length - 2)) ?? 0)
        socket.write(Buffer.from([5, code, 0, 4, ...new Uint8Array(18)]))
        if (code !== 0) socket.end()
      }
    })
  })
  await new Promise<void>((done) => server.listen(join(base, name), done))
  return server
}

function start(plans: WatchPlan[]): Watch {
  watch = new Watch(
    {
      paths: { socks: join(base, 'socks'), socksExtended: join(base, 'x') },
      control: () => undefined,
      log: SILENT,
      onChange() {},
    },
    { firstMs: 0, retryMs: 20, gapMs: 0, random: () => 0 },
  )
  watch.want(plans)
  watch.enable(true)
  return watch
}

async function known(tested: Watch): Promise<Record<string, Partial<WatchedState>>> {
  for (const end = performance.now() + 20_000; ; await pause(10)) {
    const states = tested.states ?? []
    if (states.every(({ reachable }) => reachable !== undefined)) {
      return Object.fromEntries(states.map((state) => [state.name, state]))
    }
    assert.ok(performance.now() < end, JSON.stringify(states))
  }
}

test('an onion is reached, or not found; a private one is found as far as one can without a key', async () => {
  answers.set(81, 0xf0).set(82, 0xf4).set(83, 0xf5)
  const states = await known(
    start([
      plan('well'),
      plan('lost', { port: 81 }),
      plan('private', { port: 82, private: true }),
      plan('was-ours', { port: 83, private: true }),
      plan('open', { port: 82 }),
    ]),
  )
  const told = Object.entries(states).map(
    ([name, { reachable, reason, circuits }]) => `${name} ${reachable} ${reason} ${circuits}`,
  )
  assert.deepEqual(told, [
    'well true undefined undefined',
    'lost false DescriptorNotFound false',
    'private true DescriptorFound undefined',
    'was-ours true DescriptorFound undefined',
    'open false ClientAuthMissing false',
  ])
  assert.ok(states.lost!.failures! >= 2)
  assert.ok(states.well!.latencyMs! < 3_000, 'the wait for a backend that hangs up is no latency')
})

test('nothing is said where there is nothing to look at, nor of what is not known', () => {
  assert.equal(start([]).states, undefined)
  watch!.close()
  assert.deepEqual(start([plan('web')]).states, [
    { namespace: 'shop', name: 'web', address: ADDRESS, failures: 0 },
  ])
})
