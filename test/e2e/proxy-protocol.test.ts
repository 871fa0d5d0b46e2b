import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:net'
import { test } from 'node:test'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'
import { sharedTorNetwork } from '../../testbed/tor-network/shared.ts'
import { backend, onionService, startUp, torDaemon } from './up.ts'
import { body, stream } from './visit.ts'

const network = await sharedTorNetwork()

/** A web server that says what stood before the request. */
async function headerServer(): Promise<{ port: number } & Disposable> {
  const server: Server = createServer((socket) => {
    let text = ''
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (!text.includes('\r\n\r\n')) return
      const said = text.startsWith('PROXY ') ? text.slice(0, text.indexOf('\r\n')) : 'no header'
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${said.length}\r\nConnection: close\r\n\r\n${said}`)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  return { port: address.port, [Symbol.dispose]: () => void server.close() }
}

test('a backend learns which circuit a connection came over, when it wants to', async () => {
  using server = await headerServer()
  const web = (spec: object): string => `${onionService('web', spec)}---\n${backend('web', server.port)}`
  await using up = startUp({
    'tor.yaml': torDaemon(network.options),
    'web.yaml': web({ proxyProtocol: true, streams: { max: 20 }, pow: { queueRate: 20 } }),
    'plain.yaml': `${onionService('plain', {}, 'default', 'web')}`,
  })
  const host = await up.published('web')
  const plain = await up.published('plain')
  const said = async (onion: string): Promise<string> =>
    body(await stream(network.socksPort, onion, 80), onion)

  const first = await said(host)
  assert.match(first, /^PROXY TCP6 fc00:dead:beef:4dad::[0-9a-f:]+ ::1 \d+ \d+$/)
  // Another visitor, on a circuit of its own.
  const second = await said(host)
  assert.notEqual(first.split(' ')[2], second.split(' ')[2])
  assert.equal(await said(plain), 'no header')

  // Turned off: the same address, now from the control port.
  up.write('web.yaml', web({}))
  await up.until('the onion to be published anew', () => {
    const { observedGeneration } = up.get(ONION_SERVICE, 'web')?.status ?? {}
    return observedGeneration === up.get(ONION_SERVICE, 'web')?.metadata.generation
  })
  const end = Date.now() + 120_000
  for (let seen = ''; seen !== 'no header'; ) {
    seen = await said(host).catch((error: Error) => error.message)
    assert.ok(Date.now() < end, `still ${seen}`)
  }
  up.remove('web.yaml')
  assert.equal(await said(plain), 'no header')
})
