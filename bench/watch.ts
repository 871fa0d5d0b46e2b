import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ONION_SERVICE } from '../src/tor/api/onion-service.ts'
import type { FaultProxy } from '../test/faults/fault-proxy.ts'
import type { Space } from '../test/faults/space.ts'
import { World } from '../test/faults/world.ts'
import { until } from '../test/node/site.ts'
import { BundledOperator } from './bundled-operator.ts'
import type { Report } from './figure.ts'

const ROUNDS = 5
const BAR = 2
const STORM_MS = 6_000
/** Without its memory of it the API server asks etcd, which has forgotten what was compacted. */
const FORGETFUL = '--watch-cache-sizes=onionservices.tor.fr0st.dev#0'

interface Scene {
  world: World
  proxy: FaultProxy
  /** Changes the OnionService, and resolves once the API server has it. */
  change(): Promise<void>
}

/** Brings a fault on and ends it, and sees to a change that can only be acted on then. Resolves with when it ended. */
type Fault = (scene: Scene) => Promise<number>

const EXPIRED = 'etcd compacted, watches expired (410)'
const FAULTS: [called: string, fault: Fault][] = [
  [
    'no fault at all',
    async ({ change }) => {
      const over = performance.now()
      await change()
      return over
    },
  ],
  [
    'all watches torn',
    async ({ proxy, change }) => {
      const over = performance.now()
      if (proxy.tear('reset') < 8) throw new Error('hardly a watch is there to be torn')
      await change()
      return over
    },
  ],
  [
    'API server killed and started again',
    async ({ world, change }) => {
      await world.bed.apiserver.kill()
      await world.bed.apiserver.start()
      const over = performance.now()
      await change()
      return over
    },
  ],
  [
    EXPIRED,
    async ({ world, proxy, change }) => {
      proxy.blackHole = 'watches'
      proxy.tear('reset')
      await change()
      await world.bed.etcd.compact()
      const over = performance.now()
      proxy.calm()
      return over
    },
  ],
  ['storm of 429 over', storm({})],
  ['storm of 429 with Retry-After: 1 over', storm({ retryAfter: 1 })],
]

function storm(more: { retryAfter?: number }): Fault {
  return async ({ proxy, change }) => {
    proxy.storm = { status: 429, ...more }
    proxy.tear('reset')
    await change()
    await pause(STORM_MS)
    const over = performance.now()
    proxy.calm()
    return over
  }
}

/** From the end of a fault until the operator has acted on a change that it could not see before. */
export async function watch(report: Report): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'pbw-'))
  try {
    await using world = await World.start({ apiserver: [FORGETFUL] })
    const [space] = await world.usual('bench')
    await using proxy = await world.proxy()
    await using operator = await BundledOperator.start(await BundledOperator.build(folder), proxy.kubeconfig)
    await operator.warm
    await world.declared()
    let port = 8000
    const change = (): Promise<void> => declare(space, ++port)
    for (const [called, fault] of FAULTS) {
      const times: number[] = []
      for (let round = 0; round < ROUNDS; round++) {
        await until('the operator to follow everything', async () =>
          (await operator.ready()) ? true : undefined,
        )
        const before = await lists(operator)
        const over = await fault({ world, proxy, change })
        times.push(((await acted(space)) - over) / 1000)
        if (called === EXPIRED && (await lists(operator)) === before) throw new Error('no watch had expired')
      }
      times.sort((a, b) => a - b)
      const worst = times.at(-1)!
      report({ figure: `watch: ${called}`, value: times[Math.floor(ROUNDS / 2)]!, unit: 's' })
      const figure = `watch: ${called}, longest of ${ROUNDS}`
      report({ figure, value: worst, unit: 's', bar: `< ${BAR} s`, ok: worst < BAR })
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function declare(space: Space, port: number): Promise<void> {
  const onion = { ports: { [port]: { service: 'web', port: 80 } } }
  await until('the change to be taken', async () => {
    await space.onion('web', onion)
    return true
  })
}

/** Resolves with when the newest generation was seen to have a status. */
async function acted(space: Space): Promise<number> {
  const end = performance.now() + 120_000
  for (;;) {
    const { metadata, status } = await space.get(ONION_SERVICE, 'web')
    const now = performance.now()
    if (status?.observedGeneration === metadata.generation) return now
    if (now > end) throw new Error(`not acted on: ${JSON.stringify(status)}`)
    await pause(20)
  }
}

function lists(operator: BundledOperator): Promise<number> {
  return operator.metric('postern_watch_relists_total', { kind: ONION_SERVICE.plural })
}
