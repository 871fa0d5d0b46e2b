import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SECRET } from '../../src/cluster/kinds.ts'
import { TOR_DAEMON } from '../../src/tor/api/tor-daemon.ts'
import { freePorts } from '../../testbed/tor-network/ports.ts'
import { sharedTorNetwork } from '../../testbed/tor-network/shared.ts'
import { bridgeStage, skip } from './bridge-stage.ts'
import { bridgePage, startDistributor } from './distributor.ts'
import { backend, document, onionService, startUp, webServer } from './up.ts'

const network = await sharedTorNetwork()
const { folder, bridge, visitedAnew } = bridgeStage(network)

interface Seen {
  fingerprint: string
  state: string
  seed: boolean
}

test('a daemon keeps its bridges: the seed stays, dead ones are replaced, an onion goes over what works', {
  skip,
}, async () => {
  using server = await webServer('over curated bridges')
  const [own, other] = await Promise.all(['own', 'other'].map(bridge))
  const [closed] = await freePorts(1)
  const cert = /cert=.*/.exec(own!.line)![0]
  const dead = (letter: string): string => `obfs4 127.0.0.1:${closed} ${letter.repeat(40)} ${cert}`
  using source = await startDistributor(folder, () => bridgePage(dead('C'), other!.line))
  const seed = (text: string): string =>
    document({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'tor-bridges', namespace: 'default' },
      data: { bridges: Buffer.from(text).toString('base64') },
    })
  await using up = startUp({
    'tor.yaml': document({
      apiVersion: 'tor.fr0st.dev/v1alpha1',
      kind: 'TorDaemon',
      metadata: { name: 'tor', namespace: 'default' },
      spec: {
        options: network.options,
        bridges: {
          seed: { name: 'tor-bridges' },
          source: { https: { url: `${source.url}/bridges/en?transport=obfs4` } },
          minHealthy: 2,
          maxBridges: 4,
          evictGraceSeconds: 1,
        },
      },
    }),
    'web.yaml': `${onionService('web')}---\n${backend('web', server.port)}`,
  })
  // Without its seed: it waits for it, and takes what the distributor has meanwhile.
  await up.until(
    'the missing seed to be told',
    () => up.condition(TOR_DAEMON, 'tor', 'BridgesHealthy')?.reason === 'BridgeSeedNotFound',
  )
  up.write('seed.yaml', seed(`# mine\n${dead('A')}\nobfs4 bridge.example:443\n${own!.line}\n`))
  const bridges = (): Seen[] => (up.get(TOR_DAEMON, 'tor')?.status?.bridges ?? []) as Seen[]
  const state = (fingerprint: string): string | undefined =>
    bridges().find((one) => one.fingerprint === fingerprint)?.state
  await up.until('our bridge to be healthy', () => state(own!.fingerprint) === 'healthy', 120_000)
  await up.until(
    'the dead one of the source to be taken out, that of the seed to stay',
    () => state('C'.repeat(40)) === undefined && state('A'.repeat(40)) === 'dead',
    180_000,
  )
  assert.equal(source.asked(), 1)
  const host = await up.published('web')
  await visitedAnew(host, 'over curated bridges')
  // Nothing of a line is anybody's to read but the pod's.
  const told = JSON.stringify([up.get(TOR_DAEMON, 'tor'), up.output()])
  for (const secret of [cert.slice(5, 40), `127.0.0.1:${own!.port}`]) assert.ok(!told.includes(secret))
  assert.ok(up.get(SECRET, 'tor-keys')?.data?.['bridges.txt'] !== undefined)

  up.write('seed.yaml', seed(own!.line))
  await up.until('the former seed to leave', () => state('A'.repeat(40)) === undefined)
})
