import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bridgePage, startDistributor } from '../test/e2e/distributor.ts'
import { startUp, webServer } from '../test/e2e/up.ts'
import { startBridge } from '../testbed/tor-network/bridge.ts'
import { startTorNetwork } from '../testbed/tor-network/network.ts'
import { BridgedDaemon, type Lost } from './bridged-daemon.ts'
import type { Report } from './figure.ts'
import { FirstOnions } from './first-onions.ts'

const RUNS = 3

/** What a user waits for whose network filters Tor: real obfs4 bridges of a private network, `postern up`. */
export async function bridges(report: Report): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'pbb-'))
  await using undo = new AsyncDisposableStack()
  undo.defer(() => rmSync(folder, { recursive: true, force: true }))
  const network = undo.use(await startTorNetwork({ state: join(folder, 'n') }))
  const start = async (name: string) => undo.use(await startBridge(network, join(folder, name)))
  const runs = Array.from({ length: RUNS }, (_, index) => index)
  const [seed, spare, next, ...mortal] = await Promise.all(
    ['seed', 'spare', 'next', ...runs.map((index) => `mortal-${index}`)].map(start),
  )
  const distributor = undo.use(
    await startDistributor(folder, (path) => {
      const index = /^\/first\/(\d)$/.exec(path)?.[1]
      return bridgePage(index === undefined ? next!.line : mortal[Number(index)]!.line)
    }),
  )
  const server = undo.use(await webServer('over a bridge'))
  const up = undo.use(startUp({}))

  const shared = { up, network, seed: [seed!, spare!], backendPort: server.port }
  const daemons = runs.map(
    (index) =>
      new BridgedDaemon({
        ...shared,
        namespace: `run-${index}`,
        mortal: mortal[index]!,
        next: next!,
        first: `${distributor.url}/first/${index}`,
        second: `${distributor.url}/second`,
      }),
  )
  for (const daemon of daemons) daemon.write()
  for (const daemon of daemons) await daemon.settled()
  // Distributors and running tors are left alone for a minute each: time for something else.
  const trials = new FirstOnions({ ...shared, bridge: seed!, folder, text: 'over a bridge' })
  const first = { direct: [], bridged: [], bare: [] } as Record<'direct' | 'bridged' | 'bare', number[]>
  for (const index of runs) {
    first.bridged.push(await trials.bridged(index))
    first.direct.push(await trials.direct(index))
    first.bare.push(await trials.bare(index))
  }
  const idle: Lost[] = []
  const deaths: Awaited<ReturnType<BridgedDaemon['death']>>[] = []
  const reordered: Lost[] = []
  for (const daemon of daemons) {
    idle.push(await daemon.lostByNothing())
    deaths.push(await daemon.death())
    reordered.push(await daemon.lostByReordering())
  }

  const say = (figure: string, values: number[], unit: string): number => {
    const sorted = values.toSorted((a, b) => a - b)
    const median = sorted[Math.floor(sorted.length / 2)]!
    report({ figure: `${figure}, median of ${RUNS}`, value: median, unit })
    report({ figure: '  shortest', value: sorted[0]!, unit })
    report({ figure: '  longest', value: sorted.at(-1)!, unit })
    return median
  }
  say(
    'fetched bridge gone: told as dead',
    deaths.map(({ dead }) => dead),
    's',
  )
  say(
    'fetched bridge gone: another fetched and healthy',
    deaths.map(({ replaced }) => replaced),
    's',
  )
  say(
    'fetched bridge gone: evicted, with a grace of 1 s',
    deaths.map(({ evicted }) => evicted),
    's',
  )
  const unit = 'circuits'
  const worst = Math.max(...idle.map(({ lost }) => lost))
  report({ figure: 'lost by 10 no-op reconciles, most of 3', value: worst, unit, bar: '0', ok: worst === 0 })
  report({ figure: '  of introduction circuits', value: Math.min(...idle.map(({ of }) => of)), unit })
  const naive = reordered.toSorted((a, b) => a.lost / a.of - b.lost / b.of)[0]!
  report({ figure: 'lost by the same bridges in another order, fewest of 3', value: naive.lost, unit })
  report({ figure: '  of introduction circuits', value: naive.of, unit })
  const bridged = say('manifest to first page of an onion over a bridge', first.bridged, 's')
  const direct = say('the same without bridges', first.direct, 's')
  const bare = say('a tor by itself: torrc with that bridge to first page', first.bare, 's')
  report({ figure: 'over a bridge, against without one', value: bridged / direct, unit: '×' })
  report({ figure: 'over a bridge, against a tor by itself', value: bridged / bare, unit: '×' })
}
