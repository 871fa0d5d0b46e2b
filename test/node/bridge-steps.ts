import assert from 'node:assert/strict'
import { join } from 'node:path'
import { startBridge } from '../../testbed/tor-network/bridge.ts'
import { connectionsOf } from './connections.ts'
import * as site from './site.ts'
import { OURS, type Steps } from './steps.ts'

export const CENSORED = 'censored'
const PAGE = 'hello over a bridge'

interface Bridge {
  fingerprint: string
  state: string
  seed: boolean
}

/** A namespace whose daemon has bridges, of docs/censored-network.md. */
export function bridgeSteps({ step, stage, defer }: Steps): void {
  step('publishes over a bridge, and connects to nothing else', async () => {
    const { access, tor, apply, list, get, folder } = stage()
    const bridge = await startBridge(tor, join(folder, 'bridge'), access.network.hostAddress)
    defer(() => bridge.stop())
    const daemon = site.daemonObject(stage(), CENSORED) as { spec: object }
    const seed = { name: 'tor-bridges', key: 'bridges' }
    await apply(
      site.namespaceObject(CENSORED),
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { namespace: CENSORED, name: seed.name },
        stringData: { bridges: `# from a friend\n${bridge.line}\n` },
      },
      { ...daemon, spec: { ...daemon.spec, bridges: { transport: 'obfs4', seed, minHealthy: 1 } } },
      ...site.siteObjects(CENSORED, 'site', PAGE, 80),
      site.onionObject(CENSORED, 'site', 'site', 80),
    )
    const onion = await site.ready(stage(), 'onionservice', CENSORED, 'site')
    await site.visited(stage(), (onion.status as { hostname: string }).hostname, PAGE)

    const told = await site.ready(stage(), 'tordaemon', CENSORED, 'tor')
    assert.equal(site.conditionOf(told, 'BridgesHealthy')?.status, 'True', JSON.stringify(told.status))
    const bridges = (told.status as { bridges: Bridge[] }).bridges
    assert.deepEqual(
      bridges.map(({ fingerprint, state, seed }) => ({ fingerprint, state, seed })),
      [{ fingerprint: bridge.fingerprint, state: 'healthy', seed: true }],
    )
    // No word of a line in what anybody may read.
    const cert = /cert=(\S+)/.exec(bridge.line)![1]!
    const open = [told, await get('configmap', 'tor-topology', CENSORED)]
    for (const secret of [cert, `:${bridge.port}`]) assert.ok(!JSON.stringify(open).includes(secret))

    // Since the pod's first moment: the kernel's table has also what has ended.
    const outside = async (namespace: string): Promise<string[]> => {
      const pods = await list('pods', '-n', namespace, '-l', OURS)
      assert.equal(pods.length, 1)
      return await connectionsOf(access.network, (pods[0]!.status as { podIP: string }).podIP)
    }
    const only = `${access.network.hostAddress}:${bridge.port}`
    assert.deepEqual(await outside(CENSORED), [only])
    const relays = await outside('lab')
    assert.ok(relays.length > 1 && !relays.includes(only), `relays, without bridges: ${relays}`)
  })
}
