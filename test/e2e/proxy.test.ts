import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { ONION_PROXY } from '../../src/tor/api/onion-proxy.ts'
import { sharedTorNetwork } from '../../testbed/tor-network/shared.ts'
import { backend, document, onionService, startUp, torDaemon, webServer } from './up.ts'
import { body } from './visit.ts'

const network = await sharedTorNetwork()

const UNKNOWN = 'libera75jm6of4wxpxt4aynol3xjmbtxgfyjpu34ss4d7r7q2v5zrpyd.onion'

function proxy(name: string, onion: string, listenPort: number, namespace = 'default'): string {
  return document({
    apiVersion: 'tor.fr0st.dev/v1alpha1',
    kind: 'OnionProxy',
    metadata: { name, namespace },
    spec: { targets: [{ name: 'target', onion, port: 80, listenPort }] },
  })
}

test('a proxy reaches the onion of another namespace; a port has one owner', async () => {
  using server = await webServer('across')
  await using up = startUp({
    'tor.yaml': torDaemon(network.options),
    'client-tor.yaml': torDaemon(network.options, 'client'),
    'web.yaml': `${onionService('web')}---\n${backend('web', server.port)}`,
  })
  const host = await up.published('web')
  up.write('a-proxy.yaml', proxy('upstreams', host, 6697, 'client'))
  up.write('b-unknown.yaml', proxy('unknown', UNKNOWN, 6700, 'client'))
  await up.until(
    'the proxy to be ready',
    () => up.condition(ONION_PROXY, 'upstreams', 'Ready', 'client')?.status === 'True',
    120_000,
  )
  const endpoint = up.get(ONION_PROXY, 'upstreams', 'client')!.status!.targets![0]!.endpoint
  const [address, port] = endpoint.split(':')
  assert.match(address!, /^127\.77\./)
  const socket = connect({ host: address!, port: Number(port) })
  assert.match(await body(socket, host), /across/)

  await up.until(
    'the unknown onion to be told',
    () => up.condition(ONION_PROXY, 'unknown', 'TargetsReachable', 'client')?.status === 'False',
    120_000,
  )
  assert.equal(
    up.condition(ONION_PROXY, 'unknown', 'TargetsReachable', 'client')?.reason,
    'DescriptorNotFound',
  )

  const older = up.get(ONION_PROXY, 'upstreams', 'client')!.metadata.creationTimestamp!
  await up.until('the clock to move on', () => new Date().toISOString().slice(0, 19) > older.slice(0, 19))
  up.write('c-late.yaml', proxy('late', host, 6697, 'client'))
  await up.until(
    'the loser to be told',
    () => up.condition(ONION_PROXY, 'late', 'PortsAccepted', 'client')?.reason === 'PortTaken',
  )
  assert.match(
    up.condition(ONION_PROXY, 'late', 'PortsAccepted', 'client')!.message,
    /client\/upstreams is older/,
  )
  up.remove('a-proxy.yaml')
  await up.until(
    'the loser to have its port',
    () => up.condition(ONION_PROXY, 'late', 'PortsAccepted', 'client')?.status === 'True',
  )
})
