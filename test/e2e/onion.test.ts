import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { SECRET } from '../../src/cluster/kinds.ts'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'
import { TOR_DAEMON } from '../../src/tor/api/tor-daemon.ts'
import { writeOnionKeyFiles } from '../../src/tor/onion/files.ts'
import { generateOnionKey } from '../../src/tor/onion/key.ts'
import { sharedTorNetwork } from '../../testbed/tor-network/shared.ts'
import { backend, document, onionService, startUp, torDaemon, webServer } from './up.ts'
import { body, page, stream, visitUntil } from './visit.ts'

const network = await sharedTorNetwork()

test('an onion is published, reached, changed while in use, and deleted', async () => {
  const { socksPort } = network
  using chunks = slowServer()
  await chunks.listening
  using second = await webServer('the second backend')
  await using up = startUp({
    'tor.yaml': torDaemon(network.options),
    'web.yaml': onionService('web'),
    'backend.yaml': backend('web', chunks.port()),
  })
  const host = await up.published('web')
  assert.match(host, /^[a-z2-7]{56}\.onion$/)
  await up.until(
    'the onion to be ready',
    () => up.condition(ONION_SERVICE, 'web', 'Ready')?.status === 'True',
  )
  await visitUntil(socksPort, host, 'slow')

  // A download runs; its backend moves; a second onion comes: the download must not notice.
  chunks.hold()
  const socket = await stream(socksPort, host, 80)
  const download = body(socket, host)
  await chunks.started()
  up.write('backend.yaml', backend('web', second.port))
  await visitUntil(socksPort, host, 'the second backend')
  up.write('other.yaml', onionService('other', {}, 'default', 'web'))
  const otherHost = await up.published('other')
  await visitUntil(socksPort, otherHost, 'the second backend')
  chunks.release()
  const pieces = (await download).split('\r\n')
  assert.ok(pieces.includes('slow') && pieces.includes('.done'), pieces.join(' '))
  const daemon = up.get(TOR_DAEMON, 'tor')
  assert.equal(daemon?.status?.onionsPublished, 2)

  // Deleted: nothing behind the address, its key kept, and the same address for the next of its name.
  up.remove('web.yaml')
  await up.until('the onion to be gone', () => up.get(ONION_SERVICE, 'web') === undefined)
  await up.until('one onion to be left', () => up.get(TOR_DAEMON, 'tor')?.status?.onionsPublished === 1)
  await assert.rejects(page(socksPort, host, 10_000))
  assert.ok(up.get(SECRET, 'web-onion-key'))
  up.write('web.yaml', onionService('web'))
  assert.equal(await up.published('web'), host)
})

test('a vanity key, wrong keys, a key twice, and a Service that comes later', async () => {
  const key = generateOnionKey()
  const files = writeOnionKeyFiles(key)
  using server = await webServer('vanity')
  const vanity = (name: string, secretKey: Uint8Array): string =>
    document({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name },
      data: { hs_ed25519_secret_key: Buffer.from(secretKey).toString('base64') },
    })
  await using up = startUp({
    'tor.yaml': torDaemon(network.options),
    'keys.yaml': [
      vanity('good', files.hs_ed25519_secret_key),
      vanity('seed', Buffer.alloc(32, 3)),
      document({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'empty' }, data: {} }),
    ].join('---\n'),
    'a-web.yaml': onionService('web', { privateKeySecret: { name: 'good' } }),
    'bad.yaml': [
      onionService('seed', { privateKeySecret: { name: 'seed' } }),
      onionService('empty', { privateKeySecret: { name: 'empty' } }),
      onionService('missing', { privateKeySecret: { name: 'nowhere' } }),
    ].join('---\n'),
  })
  assert.equal(await up.published('web'), `${key.address}.onion`)
  const reason = (name: string, type: string): string | undefined =>
    up.condition(ONION_SERVICE, name, type)?.reason
  await up.until('the wrong keys to be told', () => reason('missing', 'KeyValid') === 'KeySecretNotFound')
  assert.equal(reason('seed', 'KeyValid'), 'KeyIsSeed')
  assert.equal(reason('empty', 'KeyValid'), 'KeyMissing')
  assert.equal(reason('web', 'BackendReady'), 'ServiceNotFound')

  // In another namespace, a second later: the younger is told who has the key.
  const older = up.get(ONION_SERVICE, 'web')!.metadata.creationTimestamp
  await up.until('the clock to move on', () => new Date().toISOString().slice(0, 19) > older!.slice(0, 19))
  up.write(
    'twin.yaml',
    [
      document({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'good', namespace: 'other' },
        data: { hs_ed25519_secret_key: files.hs_ed25519_secret_key.toString('base64') },
      }),
      onionService('twin', { privateKeySecret: { name: 'good' } }, 'other'),
    ].join('---\n'),
  )
  await up.until(
    'the twin to be told',
    () => up.condition(ONION_SERVICE, 'twin', 'KeyValid', 'other')?.reason === 'DuplicateKey',
  )
  assert.equal(up.condition(ONION_SERVICE, 'web', 'Published')?.status, 'True')

  up.write('backend.yaml', backend('web', server.port))
  await up.until('the backend to be ready', () => reason('web', 'BackendReady') === 'EndpointsReady')
  await visitUntil(network.socksPort, `${key.address}.onion`, 'vanity')
})

/** Answers at once, or, while held, with a first piece now and the rest when it is released. */
function slowServer() {
  let held = false
  let begun: () => void = () => {}
  let go: () => void = () => {}
  const start = new Promise<void>((done) => {
    begun = done
  })
  const released = new Promise<void>((done) => {
    go = done
  })
  const server = createServer((_request, response) => {
    if (!held) return response.end('slow')
    // Only the one download is slow: a visit that still comes to this backend must not wait for its end.
    held = false
    response.write('slow')
    const dots = setInterval(() => response.write('.'), 100)
    begun()
    void released.then(() => {
      clearInterval(dots)
      response.end('.done')
    })
  })
  const listening = new Promise<void>((done) => server.listen(0, '127.0.0.1', () => done()))
  return {
    listening,
    port: () => (server.address() as AddressInfo).port,
    hold: () => {
      held = true
    },
    started: () => start,
    release: () => go(),
    [Symbol.dispose]: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
