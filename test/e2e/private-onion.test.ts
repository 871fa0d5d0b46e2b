import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { SECRET } from '../../src/cluster/kinds.ts'
import { SocksError } from '../../src/relay/socks-error.ts'
import { ONION_PROXY } from '../../src/tor/api/onion-proxy.ts'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'
import { sharedTorNetwork } from '../../testbed/tor-network/shared.ts'
import { backend, document, onionService, startUp, torDaemon, type Up, webServer } from './up.ts'
import { body, stream } from './visit.ts'

const network = await sharedTorNetwork()

const clients = (...names: string[]): object => ({
  clientAuthorization: { clients: names.map((name) => ({ name, generate: true })) },
})

function proxy(onion: string, clientAuthSecret?: string, listenPort = 6697): string {
  return document({
    apiVersion: 'tor.fr0st.dev/v1alpha1',
    kind: 'OnionProxy',
    metadata: { name: 'private', namespace: 'client' },
    spec: {
      targets: [
        {
          name: 'web',
          onion,
          port: 80,
          listenPort,
          ...(clientAuthSecret === undefined ? {} : { clientAuthSecret: { name: clientAuthSecret } }),
        },
      ],
    },
  })
}

/** A Secret as its owner got it from the onion's people. */
function handedOver(up: Up, client: string, name: string): string {
  const made = up.get(SECRET, `web-client-${client}`)
  assert.ok(made?.data !== undefined, `no Secret web-client-${client}`)
  return document({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'client' },
    data: { 'private-key': made.data['private-key'] },
  })
}

async function reason(up: Up, wanted: string): Promise<void> {
  await up.until(
    `the proxy to say ${wanted}`,
    () => up.condition(ONION_PROXY, 'private', 'TargetsReachable', 'client')?.reason === wanted,
    120_000,
  )
}

test('a private onion: only who is let in comes in, and who is taken out is out at once', async () => {
  using server = await webServer('for friends')
  const web = (spec: object): string => `${onionService('web', spec)}---\n${backend('web', server.port)}`
  await using up = startUp({
    'tor.yaml': torDaemon(network.options),
    'client-tor.yaml': torDaemon(network.options, 'client'),
    'web.yaml': web(clients('alice', 'bob')),
  })
  const host = await up.published('web')
  assert.equal(up.condition(ONION_SERVICE, 'web', 'AuthConfigured')?.status, 'True')

  up.write('proxy.yaml', proxy(host))
  await reason(up, 'ClientAuthMissing')
  // A stranger outside finds nothing either.
  await assert.rejects(stream(network.socksPort, host, 80), (error) => error instanceof SocksError)

  const { data } = JSON.parse(handedOver(up, 'alice', 'x')) as { data: Record<string, string> }
  const wrong = Buffer.from(Buffer.alloc(32, 7).toString('base64')).toString('base64')
  const secret = (key: string): string =>
    document({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'ours', namespace: 'client' },
      data: { 'private-key': key },
    })
  up.write('proxy.yaml', proxy(host, 'ours'))
  await reason(up, 'ClientSecretNotFound')
  up.write('secret.yaml', secret(wrong))
  await reason(up, 'ClientAuthWrong')
  up.write('secret.yaml', secret(data['private-key']!))
  await reason(up, 'AllReachable')

  const endpoint = up.get(ONION_PROXY, 'private', 'client')!.status!.targets![0]!.endpoint
  const [address, port] = endpoint.split(':')
  const visit = (): Promise<string> => body(connect({ host: address!, port: Number(port) }), host)
  assert.match(await visit(), /for friends/)

  // A connection that stays open, on a circuit that was let in.
  const open = connect({ host: address!, port: Number(port) })
  await new Promise((done) => open.once('connect', done))
  const cut = new Promise<void>((done) => open.once('close', () => done()))
  open.on('error', () => {})
  open.resume()
  open.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive\r\n\r\n`)
  await new Promise((done) => open.once('data', done))

  up.write('web.yaml', web(clients('bob')))
  await cut
  await up.until(
    'the Secret of a client who is out to be gone',
    () => up.get(SECRET, 'web-client-alice') === undefined,
  )
  await reason(up, 'ClientAuthWrong')
  await assert.rejects(visit())

  up.write('secret.yaml', handedOver(up, 'bob', 'ours'))
  await reason(up, 'AllReachable')
  assert.match(await visit(), /for friends/)

  up.write('web.yaml', web({}))
  await up.until(
    'the onion to be open to all',
    () => up.condition(ONION_SERVICE, 'web', 'AuthConfigured') === undefined,
  )
})

test('an onion that nobody may enter is not published, and says why', async () => {
  using server = await webServer('nobody')
  const spec = { clientAuthorization: { clients: [{ name: 'a', generate: true }] } }
  await using up = startUp({
    'tor.yaml': torDaemon(network.options),
    'taken.yaml': document({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'web-client-a', namespace: 'default' },
      data: { 'private-key': 'AAAA' },
    }),
    'web.yaml': `${onionService('web', spec)}---\n${backend('web', server.port)}`,
  })
  await up.until(
    'the name to be told as taken',
    () => up.condition(ONION_SERVICE, 'web', 'AuthConfigured')?.reason === 'NameTaken',
  )
  assert.equal(up.condition(ONION_SERVICE, 'web', 'Published')?.reason, 'NotPublished')
  up.remove('taken.yaml')
  await up.published('web')
})
