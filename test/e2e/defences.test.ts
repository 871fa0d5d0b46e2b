import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CONFIG_MAP } from '../../src/cluster/kinds.ts'
import { socks5Connect } from '../../src/relay/socks5.ts'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'
import { sharedTorNetwork } from '../../testbed/tor-network/shared.ts'
import { backend, onionService, startUp, torDaemon, webServer } from './up.ts'
import { body, visitUntil } from './visit.ts'

const network = await sharedTorNetwork()

/** A stream of a visitor who has one circuit for all of theirs. */
function sameVisitor(host: string): ReturnType<typeof socks5Connect> {
  const proxy = { host: '127.0.0.1', port: network.socksPort }
  return socks5Connect({
    proxy,
    host,
    port: 80,
    username: `same-${process.pid}`,
    password: 'x',
    timeoutMs: 60_000,
  })
}

test('a visitor has as many streams at a time as are allowed, and proof of work costs an idle onion nothing', async () => {
  using server = await webServer('within bounds')
  await using up = startUp({
    'tor.yaml': torDaemon(network.options),
    'web.yaml': `${onionService('web', { streams: { max: 2 }, pow: { queueRate: 20, queueBurst: 40 } })}---\n${backend('web', server.port)}`,
  })
  const host = await up.published('web')
  await visitUntil(network.socksPort, host, 'within bounds')
  const first = await sameVisitor(host)
  const second = await sameVisitor(host)
  await assert.rejects(sameVisitor(host), 'a third one at the same time')
  // The circuit is there all the same, and a stream that ends makes room.
  assert.match(await body(first, host), /within bounds/)
  assert.match(await body(second, host), /within bounds/)
  const end = Date.now() + 60_000
  for (let seen = ''; !seen.includes('within bounds'); ) {
    seen = await sameVisitor(host)
      .then((stream) => body(stream, host))
      .catch((error: Error) => error.message)
    assert.ok(Date.now() < end, `still ${seen}`)
  }

  // The limit goes, and the address stays.
  up.write('web.yaml', `${onionService('web')}---\n${backend('web', server.port)}`)
  await up.until('the change to be observed', () => {
    const { metadata, status } = up.get(ONION_SERVICE, 'web')!
    return status?.observedGeneration === metadata.generation
  })
  assert.equal(await up.published('web'), host)
  await visitUntil(network.socksPort, host, 'within bounds')
})

test('where the site on the open web sends its visitors, the onion answers', async () => {
  using server = await webServer('the twin')
  await using up = startUp({
    'tor.yaml': torDaemon(network.options),
    'web.yaml': `${onionService('web', { onionLocation: {} })}---\n${backend('web', server.port)}`,
  })
  const hostname = await up.published('web')
  const data = await up.until('the header', () => up.get(CONFIG_MAP, 'web-location')?.data)
  const sent = new URL(data['onion-location']!)
  assert.equal(sent.hostname, hostname)
  assert.equal(sent.protocol, 'http:')
  assert.ok(data['nginx.conf']!.includes(sent.origin))
  await visitUntil(network.socksPort, sent.hostname, 'the twin')
  up.write('web.yaml', `${onionService('web')}---\n${backend('web', server.port)}`)
  await up.until('the header to go', () => up.get(CONFIG_MAP, 'web-location') === undefined)
})
