import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { ONION_PROXY } from '../../src/tor/api/onion-proxy.ts'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'
import { sharedTorNetwork } from '../../testbed/tor-network/shared.ts'
import { backend, document, onionService, startUp, torDaemon, webServer } from './up.ts'
import { body, visitUntil } from './visit.ts'

/** What users of other projects ran into, and no other test shows (docs/field-bugs.md has them all). */

const network = await sharedTorNetwork()

test('a Service that is deleted and made again elsewhere is found again, by the same onion and the same tor', async () => {
  using first = await webServer('before')
  using second = await webServer('after')
  await using up = startUp({
    'tor.yaml': torDaemon(network.options),
    'onion.yaml': onionService('web'),
    'web.yaml': backend('web', first.port),
  })
  const hostname = await up.published('web')
  await visitUntil(network.socksPort, hostname, 'before')
  const uploaded = () => up.condition(ONION_SERVICE, 'web', 'Published')?.lastTransitionTime
  const since = uploaded()
  up.remove('web.yaml')
  await up.until(
    'the missing Service to be told',
    () => up.condition(ONION_SERVICE, 'web', 'BackendReady')?.reason === 'ServiceNotFound',
  )
  up.write('web.yaml', backend('web', second.port))
  await visitUntil(network.socksPort, hostname, 'after')
  assert.equal(uploaded(), since, 'it was published all the time')
})

test('an address is there before tor is, whatever its backend: none, or one without endpoints, which is told', async () => {
  await using up = startUp({
    'tor.yaml': torDaemon(network.options),
    'nothing.yaml': onionService('nothing', {}, 'default', 'my-ingress'),
    'empty.yaml': `${onionService('empty')}---\n${document({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'empty', namespace: 'default' },
      spec: { ports: [{ name: 'http', port: 80 }] },
    })}`,
  })
  const reasons = { nothing: 'ServiceNotFound', empty: 'NoReadyEndpoints' }
  for (const [name, reason] of Object.entries(reasons)) {
    await up.until(`OnionService ${name} to say ${reason}`, () => {
      const ready = up.condition(ONION_SERVICE, name, 'BackendReady')
      const { hostname = '' } = up.get(ONION_SERVICE, name)?.status ?? {}
      return ready?.status === 'False' && ready.reason === reason && /^[a-z2-7]{56}\.onion$/.test(hostname)
    })
    assert.match(up.condition(ONION_SERVICE, name, 'BackendReady')?.message ?? '', /my-ingress|empty/)
  }
})

test('an onion is reached from its own namespace as well, through the tor that publishes it', async () => {
  using server = await webServer('next door')
  await using up = startUp({
    'tor.yaml': torDaemon(network.options),
    'web.yaml': `${onionService('web')}---\n${backend('web', server.port)}`,
  })
  const onion = await up.published('web')
  up.write(
    'proxy.yaml',
    document({
      apiVersion: 'tor.fr0st.dev/v1alpha1',
      kind: 'OnionProxy',
      metadata: { name: 'door', namespace: 'default' },
      spec: { targets: [{ name: 'web', onion, port: 80, listenPort: 6697 }] },
    }),
  )
  await up.until(
    'the proxy to be ready',
    () => up.condition(ONION_PROXY, 'door', 'Ready')?.status === 'True',
    120_000,
  )
  const [host, port] = up.get(ONION_PROXY, 'door')!.status!.targets![0]!.endpoint.split(':')
  assert.match(await body(connect({ host: host!, port: Number(port) }), onion), /next door/)
})
