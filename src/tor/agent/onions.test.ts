import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { SILENT } from '../../core/logger.ts'
import type { OnionPlan, OnionState } from '../contract.ts'
import type { ControlClient } from '../control/client.ts'
import { ControlError } from '../control/errors.ts'
import type { HsDescAction } from '../control/events.ts'
import { deriveOnionKey, generateOnionKey, type OnionKey } from '../onion/key.ts'
import { Backends } from './backends.ts'
import { OnionKeys } from './onion-keys.ts'
import { ONION_LIMITS } from './onion-plan.ts'
import { Onions } from './onions.ts'

/** Answers as tor does, remembers what it was told, and lies when it is told to. */
class FakeTor {
  readonly commands: string[] = []
  readonly onions = new Set<string>()
  foreign: string | undefined
  refuse = false

  async addOnion({ key }: { key: string }): Promise<{ serviceId: string }> {
    const own = deriveOnionKey(Buffer.from(key.slice('ED25519-V3:'.length), 'base64')).address
    const serviceId = this.foreign ?? own
    this.commands.push(`ADD ${serviceId}`)
    await pause(0)
    if (this.refuse) throw new ControlError('ADD_ONION', 551, 'no')
    if (this.onions.has(serviceId)) throw new ControlError('ADD_ONION', 550, 'Onion address collision')
    this.onions.add(serviceId)
    return { serviceId }
  }

  async delOnion(address: string): Promise<void> {
    this.commands.push(`DEL ${address}`)
    await pause(0)
    if (!this.onions.delete(address)) throw new ControlError('DEL_ONION', 552, 'Unknown Onion Service id')
  }

  async getInfo(): Promise<Record<string, string>> {
    return { 'onions/detached': [...this.onions].join('\n') }
  }

  get client(): ControlClient {
    return this as unknown as ControlClient
  }
}

let folder: string
let clock: number
let keys: OnionKeys
let backends: Backends
let onions: Onions
let tor: FakeTor

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'on-'))
  clock = 1_000
  keys = new OnionKeys()
  backends = new Backends({ folder: join(folder, 'o'), log: SILENT, onChange() {} })
  tor = new FakeTor()
  onions = new Onions({
    keys,
    backends,
    log: SILENT,
    onChange() {},
    onHung() {},
    keepAll: 0,
    now: () => clock,
  })
})
afterEach(async () => {
  onions.stop()
  await onions.idle()
  await backends.close(0)
  rmSync(folder, { recursive: true, force: true })
})

function use(count: number): { all: OnionKey[]; plans: OnionPlan[] } {
  const all = Array.from({ length: count }, () => generateOnionKey())
  keys.use(new Map(all.map(({ secret }, i) => [`o${i}.key`, Buffer.from(secret)])))
  const plans = all.map(({ address }, i) => ({
    name: `o${i}`,
    address,
    since: i,
    ports: [{ virtualPort: 80, endpoints: [] }],
  }))
  return { all, plans }
}

async function until(what: string, check: () => boolean, limitMs = 10_000): Promise<void> {
  const end = performance.now() + limitMs
  while (!check()) {
    assert.ok(performance.now() < end, `not within ${limitMs} ms: ${what}; ${tor.commands.join(', ')}`)
    await pause(5)
  }
}

function hear(address: string, action: HsDescAction, hsdir: string, reason?: string): void {
  onions.event({ type: 'HS_DESC', action, address, hsdir, ...(reason === undefined ? {} : { reason }) })
}

const count = (state: OnionState['state']): number =>
  onions.states().filter((one) => one.state === state).length

test('thirty onions go out ten at a time, each upload makes room for the next', async () => {
  const { all, plans } = use(30)
  onions.want(plans)
  onions.attach(tor.client, true)
  onions.bootstrapped()
  await until('ten', () => count('added') === 10)
  await onions.idle()
  assert.deepEqual(
    [...tor.onions],
    all.slice(0, 10).map(({ address }) => address),
  )
  for (let done = 0; done < 30; done += 1) {
    await until('its turn', () => tor.onions.has(all[done]!.address))
    await onions.idle()
    assert.ok(tor.onions.size <= done + 10)
    hear(all[done]!.address, 'UPLOAD', 'R1')
    hear(all[done]!.address, 'UPLOADED', 'R1')
  }
  await onions.idle()
  assert.equal(count('published'), 30)
  assert.equal(tor.commands.filter((command) => command.startsWith('DEL')).length, 0)
})

test('counts uploads of this addition only', async () => {
  const { all, plans } = use(1)
  const { address } = all[0]!
  onions.want(plans)
  onions.attach(tor.client, true)
  await until('added', () => count('added') === 1)
  hear(address, 'UPLOADED', 'R0')
  assert.equal(count('published'), 0, 'nobody asked this directory')
  for (const directory of ['R1', 'R2', 'R3']) hear(address, 'UPLOAD', directory)
  hear(address, 'FAILED', 'R1', 'UPLOAD_REJECTED')
  assert.equal(onions.states()[0]!.reason, 'UploadRefused')
  hear(address, 'UPLOADED', 'R2')
  const state = onions.states()[0]!
  assert.deepEqual([state.state, state.uploadsAsked, state.uploadsAcknowledged], ['published', 3, 1])
  assert.ok(state.lastUpload! > 1_600_000_000_000)
  onions.want([{ ...plans[0]!, ports: [{ virtualPort: 81, endpoints: [] }] }])
  await until('replaced', () => tor.commands.length === 3)
  await onions.idle()
  assert.deepEqual(tor.commands.slice(1), [`DEL ${address}`, `ADD ${address}`])
  hear(address, 'UPLOADED', 'R3')
  assert.deepEqual([onions.states()[0]!.state, onions.states()[0]!.uploadsAsked], ['added', 0])
})

test('an address that is not the expected one is removed at once', async () => {
  const { all, plans } = use(2)
  tor.foreign = generateOnionKey().address
  onions.want(plans.slice(0, 1))
  onions.attach(tor.client, true)
  await until('failed', () => count('failed') === 1)
  await onions.idle()
  assert.deepEqual(tor.commands, [`ADD ${tor.foreign}`, `DEL ${tor.foreign}`])
  assert.equal(onions.states()[0]!.reason, 'AddressMismatch')
  tor.foreign = undefined
  onions.want(plans)
  await until('the other one', () => tor.onions.has(all[1]!.address))
  await onions.idle()
  assert.ok(!tor.onions.has(all[0]!.address))
})

test('what tor lost is added again, what it should not have is removed', async () => {
  const { all, plans } = use(2)
  onions.want(plans)
  onions.attach(tor.client, true)
  await until('both', () => count('added') === 2)
  const stranger = generateOnionKey().address
  tor.onions.delete(all[0]!.address)
  tor.onions.add(stranger)
  onions.check()
  await until('as it should be', () => tor.onions.has(all[0]!.address) && !tor.onions.has(stranger))
  await onions.idle()
  assert.ok(!tor.commands.includes(`DEL ${all[1]!.address}`))
})

test('a lost control connection costs nothing; a new tor gets everything', async () => {
  const { plans } = use(3)
  onions.want(plans)
  onions.attach(tor.client, true)
  await until('three', () => count('added') === 3)
  onions.detach(false)
  assert.equal(count('added'), 3)
  onions.attach(tor.client, false)
  await onions.idle()
  assert.equal(tor.commands.length, 3)
  onions.detach(true)
  assert.equal(count('waiting'), 3)
  tor = new FakeTor()
  onions.attach(tor.client, true)
  await until('three again', () => tor.onions.size === 3)
})

test('an onion without an acknowledged upload is published anew', async () => {
  const { all, plans } = use(2)
  onions.want(plans)
  onions.attach(tor.client, true)
  onions.bootstrapped()
  await until('both', () => count('added') === 2)
  await onions.idle()
  for (const { address } of all) hear(address, 'UPLOAD', 'R1')
  hear(all[1]!.address, 'UPLOADED', 'R1')
  clock += ONION_LIMITS.unacknowledgedMs
  onions.check()
  await until('the first anew', () => tor.commands.length === 4)
  await onions.idle()
  assert.deepEqual(tor.commands.slice(2), [`DEL ${all[0]!.address}`, `ADD ${all[0]!.address}`])
})

test('a refusal is told, waits, and is tried again; a collision is cleared', async () => {
  const { all, plans } = use(1)
  tor.refuse = true
  onions.want(plans)
  onions.attach(tor.client, true)
  await until('refused', () => count('failed') === 1)
  await onions.idle()
  assert.equal(onions.states()[0]!.reason, 'TorRefused')
  assert.equal(tor.commands.length, 1)
  tor.refuse = false
  tor.onions.add(all[0]!.address)
  clock += ONION_LIMITS.refusedMinMs
  onions.want(plans)
  await until('added', () => count('added') === 1)
})

test('an onion that is no longer wanted loses its sockets, too', async () => {
  const { plans } = use(2)
  onions.want(plans)
  onions.attach(tor.client, true)
  await until('both', () => count('added') === 2)
  onions.want(plans.slice(1))
  await until('one', () => tor.onions.size === 1)
  await onions.idle()
  assert.deepEqual(backends.addresses(), [plans[1]!.address])
})

test('withdrawn: all are forgotten, those with visitors are back in one go, and nothing else is done', async () => {
  const { all, plans } = use(3)
  const [a, b, c] = all.map(({ address }) => address) as [string, string, string]
  onions.want(plans)
  onions.attach(tor.client, true)
  await until('all are added', () => count('added') === 3)
  onions.stop()
  tor.commands.length = 0
  await onions.withdraw(new Set([b]))
  assert.deepEqual(tor.commands, [`DEL ${a}`, `DEL ${b}`, `ADD ${b}`, `DEL ${c}`])
  assert.deepEqual([...tor.onions], [b])
  await onions.withdraw(new Set([b, c]))
  assert.deepEqual(
    tor.commands.slice(4),
    [`ADD ${c}`],
    'who was on the way is served, who was there is left alone',
  )
  await onions.withdraw(new Set())
  onions.check()
  onions.want([])
  await onions.idle()
  assert.equal(tor.commands.length, 5)
  assert.deepEqual([...tor.onions].sort(), [b, c].sort())
})

test('an onion that cannot be withdrawn is no reason to leave out the others', async () => {
  const { all, plans } = use(2)
  onions.want(plans)
  onions.attach(tor.client, true)
  await until('all are added', () => count('added') === 2)
  onions.stop()
  tor.onions.delete(all[0]!.address)
  await onions.withdraw(new Set())
  assert.deepEqual([...tor.onions], [])
})
