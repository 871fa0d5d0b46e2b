import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { SILENT } from '../../core/logger.ts'
import type { OnionPlan } from '../contract.ts'
import type { ControlClient } from '../control/client.ts'
import { ControlError } from '../control/errors.ts'
import { generateOnionKey } from '../onion/key.ts'
import { Backends } from './backends.ts'
import { FolderOnions } from './folder-onions.ts'
import { OnionKeys } from './onion-keys.ts'
import { ONION_LIMITS } from './onion-plan.ts'

/** Has the onions that the newest SETCONF named, and refuses one that names a folder that it does not like. */
class FakeTor {
  /** Of each SETCONF that was taken, the addresses. */
  readonly sets: string[][] = []
  disliked: string | undefined

  async setConf(settings: readonly [string, string | undefined][]): Promise<void> {
    await pause(0)
    const folders = settings.flatMap(([key, value]) => (key === 'HiddenServiceDir' && value ? [value] : []))
    const addresses = folders.map((path) => path.slice(path.lastIndexOf('/') + 1))
    if (this.disliked !== undefined && addresses.includes(this.disliked))
      throw new ControlError('SETCONF', 513, 'Unacceptable option value')
    this.sets.push(addresses)
  }

  get has(): string[] {
    return this.sets.at(-1) ?? []
  }

  get client(): ControlClient {
    return this as unknown as ControlClient
  }
}

let folder: string
let clock: number
let keys: OnionKeys
let backends: Backends
let onions: FolderOnions
let tor: FakeTor

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fo-'))
  clock = 1_000
  keys = new OnionKeys()
  backends = new Backends({ folder: join(folder, 'o'), log: SILENT, onChange() {} })
  tor = new FakeTor()
  onions = new FolderOnions({
    folder: join(folder, 'hs'),
    keys,
    backends,
    log: SILENT,
    onChange() {},
    onHung() {},
    now: () => clock,
  })
})
afterEach(async () => {
  onions.stop()
  await onions.idle()
  await backends.close(0)
  rmSync(folder, { recursive: true, force: true })
})

function use(count: number): OnionPlan[] {
  const all = Array.from({ length: count }, () => generateOnionKey())
  keys.use(new Map(all.map(({ secret }, i) => [`o${i}.key`, Buffer.from(secret)])))
  return all.map(({ address }, i) => ({
    name: `o${i}`,
    address,
    since: i,
    circuitIds: true,
    ports: [{ virtualPort: 80, endpoints: [] }],
  }))
}

/** Looks at once, as a timer would later. */
async function settle(): Promise<void> {
  onions.keysChanged()
  await onions.idle()
}

async function start(plans: readonly OnionPlan[]): Promise<void> {
  onions.want(plans)
  onions.attach(tor.client, true)
  onions.bootstrapped()
  await settle()
}

function published(address: string): void {
  onions.event({ type: 'HS_DESC', action: 'UPLOAD', address, hsdir: 'A' })
  onions.event({ type: 'HS_DESC', action: 'UPLOADED', address, hsdir: 'A' })
}

const state = (name: string): string | undefined => onions.states().find((one) => one.name === name)?.state

test('ten unpublished onions at a time, and one that is never published holds its place for a minute only', async () => {
  const plans = use(25)
  await start(plans)
  assert.equal(tor.has.length, ONION_LIMITS.window)
  published(plans[0]!.address)
  await settle()
  assert.equal(tor.has.length, ONION_LIMITS.window + 1)
  clock += ONION_LIMITS.slotMs + 1
  await settle()
  assert.equal(tor.has.length, 2 * ONION_LIMITS.window + 1)
})

test('one that tor refuses takes nothing from the others, and is tried again later, and at once when it is changed', async () => {
  const plans = use(3)
  tor.disliked = plans[1]!.address
  await start(plans)
  assert.deepEqual(tor.has, [plans[0]!.address, plans[2]!.address])
  assert.equal(state('o1'), 'failed')
  const before = tor.sets.length
  await settle()
  assert.equal(tor.sets.length, before, 'not before its time')

  tor.disliked = undefined
  clock += ONION_LIMITS.refusedMinMs + 1
  await settle()
  assert.ok(tor.has.includes(plans[1]!.address))

  tor.disliked = plans[2]!.address
  const changed = plans.map((plan) =>
    plan.name === 'o2' ? { ...plan, streams: { max: 1, closeCircuit: false } } : plan,
  )
  onions.want(changed)
  await settle()
  assert.equal(state('o2'), 'failed')
  tor.disliked = undefined
  onions.want(
    changed.map((plan) =>
      plan.name === 'o2' ? { ...plan, streams: { max: 2, closeCircuit: false } } : plan,
    ),
  )
  await settle()
  assert.ok(tor.has.includes(plans[2]!.address), 'its user changed it: it does not wait')
})

test('one whose descriptor got lost is taken out and added anew', async () => {
  const plans = use(2)
  await start(plans)
  for (const { address } of plans) published(address)
  const [lost, other] = plans as [OnionPlan, OnionPlan]
  onions.event({ type: 'HS_DESC', action: 'UPLOAD', address: lost.address, hsdir: 'B' })
  clock += ONION_LIMITS.unacknowledgedMs + 1
  const before = tor.sets.length
  await settle()
  assert.deepEqual(tor.sets.slice(before), [[other.address], [lost.address, other.address]])
})

test('all that leave do so by one command, and leave no folder behind', async () => {
  const plans = use(4)
  await start(plans)
  const before = tor.sets.length
  onions.want(plans.slice(3))
  await settle()
  assert.deepEqual(tor.sets.slice(before), [[plans[3]!.address]])
  assert.deepEqual(
    plans.map(({ address }) => existsSync(join(folder, 'hs', address))),
    [false, false, false, true],
  )
})
