import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { DEPLOYMENT } from '../src/cluster/kinds.ts'
import type { ApiClient } from '../src/cluster/kubernetes/api-client.ts'
import type { Kind, Resource } from '../src/core/resource.ts'
import { ONION_SERVICE } from '../src/tor/api/onion-service.ts'
import { TOR_DAEMON } from '../src/tor/api/tor-daemon.ts'
import type { Space } from '../test/faults/space.ts'
import { World } from '../test/faults/world.ts'
import { BundledOperator } from './bundled-operator.ts'
import type { Report } from './figure.ts'

const NAMESPACES = 100
const ONIONS = 100
const ALL = NAMESPACES * ONIONS
const MEMORY_BAR = 130
/** Without a write for so long, it is at rest. */
const REST = 3_000
const SETTLED = 60_000
const LIMIT = 900_000
const CHANGES = 10

/** 10,000 OnionServices on a real API server, without a node: no pod ever runs. */
export async function operator(report: Report): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'pbo-'))
  try {
    await using world = await World.start()
    const [bundle] = await Promise.all([BundledOperator.build(folder), declare(world)])
    const { kubeconfig } = world.access
    {
      await using first = await BundledOperator.start(bundle, kubeconfig)
      const started = performance.now()
      report({ figure: 'operator: start until caches are warm', value: (await first.warm) / 1000, unit: 's' })
      const rested = await rest(first, NAMESPACES)
      await checkConverged(world)
      report({
        figure: `operator: ${ALL} new onions served`,
        value: (rested.last - started) / 1000,
        unit: 's',
      })
      report({ figure: `operator: writes for them`, value: rested.writes, unit: '' })
      // V8 gives back what a great work took half a minute later.
      await pause(SETTLED)
      memory(report, first, 'a minute after all are served')

      const before = await first.work()
      await touchDaemons(world, String(Date.now()))
      const looked = await rest(first, before.turns + NAMESPACES)
      none(report, 'operator: writes of a resync of an unchanged world', looked.writes - before.writes)
      await pause(SETTLED)
      memory(report, first, 'a minute after a resync')
      const writes = looked.writes
      for (let index = 0; index < CHANGES; index++) await change(world.spaces[index]!, 8000 + index)
      const changed = await rest(first, looked.turns + CHANGES)
      const each = (changed.writes - writes) / CHANGES
      const [figure, bar] = ['operator: writes per change of one OnionService', 3]
      // The topology, the pod that is to look at it, and the status.
      report({ figure, value: each, unit: '', bar: `<= ${bar}`, ok: each <= bar })
    }
    await using again = await BundledOperator.start(bundle, kubeconfig)
    const started = performance.now()
    const warm = await again.warm
    report({
      figure: `operator: restart until caches of ${ALL} onions are warm`,
      value: warm / 1000,
      unit: 's',
    })
    const { last, writes } = await rest(again, NAMESPACES)
    report({ figure: 'operator: restart until all are looked at', value: (last - started) / 1000, unit: 's' })
    none(report, 'operator: writes of a restart', writes)
    await pause(SETTLED)
    memory(report, again, 'a minute after a restart')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function declare(world: World): Promise<void> {
  const work: (() => Promise<unknown>)[] = []
  for (let place = 0; place < NAMESPACES; place++) {
    const space = await world.space(`bench-${place}`)
    await space.service('web')
    await space.daemon('tor')
    for (let index = 0; index < ONIONS; index++) work.push(() => space.onion(`web-${index}`))
  }
  await inParallel(work, 24)
}

/** Turns the controller's eyes on every daemon, and so on every onion, without a change of what is declared. */
async function touchDaemons(world: World, value: string): Promise<void> {
  await inParallel(
    world.spaces.map((space) => () => {
      const content = { annotations: { 'bench.example/touched': value }, spec: {} }
      return space.apply(TOR_DAEMON, 'tor', content)
    }),
    10,
  )
}

async function change(space: Space, port: number): Promise<void> {
  await space.onion('web-0', { ports: { [port]: { service: 'web', port: 80 } } })
  const end = performance.now() + LIMIT
  for (;;) {
    const { metadata, status } = await space.get(ONION_SERVICE, 'web-0')
    if (status?.observedGeneration === metadata.generation) return
    if (performance.now() > end) throw new Error(`a change was not observed: ${JSON.stringify(status)}`)
    await pause(50)
  }
}

/** Waits until there were so many turns, and then no more writes. @returns when the last was seen, and how many turns and writes */
async function rest(
  operator: BundledOperator,
  turns: number,
): Promise<{ last: number; turns: number; writes: number }> {
  const end = performance.now() + LIMIT
  let seen = { turns: -1, open: -1, writes: -1 }
  let last = performance.now()
  for (;;) {
    const now = await operator.work()
    if (now.writes !== seen.writes || now.turns !== seen.turns || now.open > 0) last = performance.now()
    seen = now
    if (now.turns >= turns && performance.now() - last > REST) return { last, ...now }
    if (performance.now() > end) throw new Error(`it comes to no rest: ${JSON.stringify(now)}`)
    await pause(250)
  }
}

async function checkConverged({ admin }: World): Promise<void> {
  const onions = await all(admin, ONION_SERVICE)
  const served = onions.filter(({ metadata, status }) => {
    const { observedGeneration, hostname } = status ?? {}
    return observedGeneration === metadata.generation && hostname !== undefined
  })
  if (served.length !== ALL)
    throw new Error(`of ${onions.length} OnionServices ${served.length} have a status`)
  const deployments = await all(admin, DEPLOYMENT)
  if (deployments.length !== NAMESPACES) throw new Error(`there are ${deployments.length} Deployments`)
}

async function all<T extends Resource>(admin: ApiClient, kind: Kind<T>): Promise<T[]> {
  const items: T[] = []
  for (let token: string | undefined, first = true; first || token !== undefined; first = false) {
    const page = await admin.list(kind, { limit: 500, ...(token === undefined ? {} : { continue: token }) })
    items.push(...page.items)
    token = page.continue
  }
  return items
}

async function inParallel(work: (() => Promise<unknown>)[], workers: number): Promise<void> {
  const left = [...work].reverse()
  const worker = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) await next()
  }
  await Promise.all(Array.from({ length: workers }, worker))
}

function memory(report: Report, operator: BundledOperator, when: string): void {
  const { now, peak } = operator.memory()
  const figure = `operator: memory ${when}`
  report({ figure, value: now, unit: 'MB', bar: `<= ${MEMORY_BAR} MB`, ok: now <= MEMORY_BAR })
  report({ figure: `operator: its peak until then`, value: peak, unit: 'MB' })
}

function none(report: Report, figure: string, value: number): void {
  report({ figure, value, unit: '', bar: '0', ok: value === 0 })
}
