import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TOR_DAEMON } from '../src/tor/api/tor-daemon.ts'
import { onionService, startUp, torDaemon } from '../test/e2e/up.ts'
import { startTorNetwork } from '../testbed/tor-network/network.ts'
import type { Report } from './figure.ts'

const SINGLE = 7
const MANY = 60

/** Manifest changed → descriptor acknowledged, on a private network with tor already up; then 60 at once. */
export async function publish(report: Report): Promise<void> {
  const state = mkdtempSync(join(tmpdir(), 'pbn-'))
  try {
    await using network = await startTorNetwork({ state })
    await using up = startUp({ 'tor.yaml': torDaemon(network.options) })
    await up.until('tor to be ready', () => up.condition(TOR_DAEMON, 'tor', 'Ready')?.status === 'True')
    const seconds: number[] = []
    for (let index = 0; index < SINGLE; index++) {
      const name = `single-${index}`
      const began = performance.now()
      up.write(`${name}.yaml`, onionService(name))
      await up.published(name)
      seconds.push((performance.now() - began) / 1000)
    }
    seconds.sort((a, b) => a - b)
    const median = seconds[Math.floor(SINGLE / 2)]!
    report({
      figure: 'manifest to descriptor, median of 7',
      value: median,
      unit: 's',
      bar: '<= 2.5 s',
      ok: median <= 2.5,
    })
    report({ figure: 'manifest to descriptor, slowest of 7', value: seconds.at(-1)!, unit: 's' })
    const began = performance.now()
    const names = Array.from({ length: MANY }, (_, index) => `many-${index}`)
    up.write('many.yaml', names.map((name) => onionService(name)).join('---\n'))
    await up.until(
      '60 onions to be published',
      () => up.get(TOR_DAEMON, 'tor')?.status?.onionsPublished === SINGLE + MANY,
      300_000,
    )
    const all = (performance.now() - began) / 1000
    report({
      figure: '60 onions at once, all published',
      value: all,
      unit: 's',
      bar: '<= 20 s',
      ok: all <= 20,
    })
  } finally {
    rmSync(state, { recursive: true, force: true })
  }
}
