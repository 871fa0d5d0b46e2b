import assert from 'node:assert/strict'
import { once } from 'node:events'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { messageOf } from '../../src/core/errors.ts'
import { socks5Connect } from '../../src/relay/socks5.ts'
import { TOR_DAEMON, type TorDaemon } from '../../src/tor/api/tor-daemon.ts'
import { ControlClient } from '../../src/tor/control/client.ts'
import { startTorNetwork } from '../../testbed/tor-network/network.ts'
import { backend, document, onionService, startUp, torDaemon, type Up, webServer } from './up.ts'
import { body } from './visit.ts'

/** Workloads that speak SOCKS or HTTP CONNECT to the daemon of their namespace, on a network that has an exit. */

const folder = mkdtempSync(join(tmpdir(), 'pac-'))
const network = await startTorNetwork({ state: folder, exit: true })
after(async () => {
  await network.stop()
  rmSync(folder, { recursive: true, force: true })
})

interface Target {
  host: string
  port: number
}
/** Opens a stream to a target through a proxy, from an address of this machine. */
type Way = (proxy: Target, target: Target, from?: string) => Promise<Socket>

const bySocks: Way = ({ host, port }, target) =>
  socks5Connect({ proxy: { host, port }, ...target, timeoutMs: 60_000 })

/** As a program that knows nothing of SOCKS users: what keeps it apart is its address alone. */
const bySocksFrom: Way = async (proxy, { host, port }, from) => {
  const socket = connect({ ...proxy, ...(from === undefined ? {} : { localAddress: from }) })
  socket.write(Uint8Array.of(5, 1, 0))
  await once(socket, 'data')
  const name = Buffer.from(host)
  const ends = Uint8Array.of(port >> 8, port & 255)
  socket.write(Buffer.concat([Uint8Array.of(5, 1, 0, 3, name.length), name, ends]))
  const [answer] = (await once(socket, 'data')) as [Buffer]
  if (answer[1] !== 0) {
    socket.destroy()
    throw new Error(`SOCKS reply ${answer[1]}`)
  }
  return socket
}

const byConnect: Way = async (proxy, { host, port }) => {
  const socket = connect(proxy)
  socket.write(`CONNECT ${host}:${port} HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  const [line] = answer.toString('latin1').split('\r\n')
  if (!/^HTTP\/1\.[01] 200 /.test(line!)) {
    socket.destroy()
    throw new Error(line)
  }
  return socket
}

/** The answer of a page, or why there is none. */
async function fetched(way: Way, proxy: Target, target: Target): Promise<string> {
  try {
    return await body(await way(proxy, target), target.host)
  } catch (error) {
    return messageOf(error)
  }
}

async function eventually(what: string, look: () => Promise<string>, expected: RegExp): Promise<void> {
  for (const end = Date.now() + 120_000; ; ) {
    const seen = await look()
    if (expected.test(seen)) return
    if (Date.now() > end) assert.fail(`waited two minutes for ${what}; saw: ${seen}`)
    await new Promise((done) => setTimeout(done, 300))
  }
}

function client(spec: NonNullable<TorDaemon['spec']>): string {
  const object = JSON.parse(torDaemon(network.options, 'client')) as TorDaemon
  return document({ ...object, spec: { ...object.spec, ...spec } })
}

async function endpoints(up: Up): Promise<{ socks: Target; httpConnect: Target }> {
  await up.until(
    'the ports to be open',
    () => up.condition(TOR_DAEMON, 'tor', 'AccessReady', 'client')?.status === 'True',
    120_000,
  )
  const { socks, httpConnect } = up.get(TOR_DAEMON, 'tor', 'client')!.status!
  const target = (endpoint: string): Target => {
    const [host, port] = endpoint.split(':') as [string, string]
    return { host, port: Number(port) }
  }
  return { socks: target(socks!), httpConnect: target(httpConnect!) }
}

/** The control port of the tor that stands on an address. */
async function control(up: Up, address: string): Promise<ControlClient> {
  for (const path of globSync('p/*/**/control', { cwd: up.state })) {
    const one = await ControlClient.connect({ path: join(up.state, path) })
    await one.authenticate()
    if ((await one.getConf('SocksPort')).SocksPort?.join().includes(address)) return one
    await one.close()
  }
  return assert.fail(`no tor on ${address} in ${globSync('p/*/*/*', { cwd: up.state }).join(' ')}`)
}

test('onions by SOCKS and by CONNECT, the open web only where that is said, clients apart', async () => {
  using server = await webServer('across')
  await using up = startUp({
    'tor.yaml': torDaemon(network.options),
    'client-tor.yaml': client({ socks: {}, httpConnect: {} }),
    'web.yaml': `${onionService('web')}---\n${backend('web', server.port)}`,
  })
  const host = await up.published('web')
  const { socks, httpConnect } = await endpoints(up)
  assert.match(socks.host, /^127\.77\./)
  assert.equal(`${socks.port} ${httpConnect.port}`, '9050 8118')
  const onion = { host, port: 80 }
  const outside = { host: '127.0.0.1', port: server.port }
  await eventually('the onion by SOCKS', () => fetched(bySocks, socks, onion), /^across$/)
  await eventually('the onion by CONNECT', () => fetched(byConnect, httpConnect, onion), /^across$/)
  assert.match(await fetched(bySocks, socks, outside), /not allowed|NotAllowed|forbid/i)
  assert.match(await fetched(byConnect, httpConnect, outside), /403/)

  await using tor = await control(up, socks.host)
  const pid = (await tor.getInfo('process/pid'))['process/pid']
  /** The circuit of a new stream to the onion. */
  const open: Socket[] = []
  const circuit = async (from: string): Promise<string> => {
    const streams = async (): Promise<string[]> =>
      ((await tor.getInfo('stream-status'))['stream-status'] ?? '').split('\n').filter((line) => line !== '')
    const before = new Set((await streams()).map((line) => line.split(' ')[0]))
    open.push(await bySocksFrom(socks, onion, from))
    const mine = (await streams()).filter((line) => !before.has(line.split(' ')[0]))
    assert.equal(mine.length, 1, mine.join('\n'))
    return mine[0]!.split(' ')[2]!
  }
  const first = await circuit('127.0.0.1')
  assert.equal(await circuit('127.0.0.1'), first, 'one client keeps its circuit')
  assert.notEqual(await circuit('127.77.250.30'), first, 'another client has another one')
  for (const socket of open) socket.destroy()

  up.write('client-tor.yaml', client({ socks: { exit: 'All' }, httpConnect: { exit: 'All' } }))
  await eventually('the web by SOCKS', () => fetched(bySocks, socks, outside), /^across$/)
  await eventually('the web by CONNECT', () => fetched(byConnect, httpConnect, outside), /^across$/)
  up.write('client-tor.yaml', client({ socks: {} }))
  await eventually(
    'SOCKS to be for onions',
    () => fetched(bySocks, socks, outside),
    /not allowed|NotAllowed|forbid/i,
  )
  await eventually('CONNECT to be gone', () => fetched(byConnect, httpConnect, outside), /ECONNREFUSED/)
  assert.match(await fetched(bySocks, socks, onion), /across/)
  assert.equal((await tor.getInfo('process/pid'))['process/pid'], pid, 'all of it in the same tor')
})

test('a proxy that wants a port of the daemon is told, and gets it once it is free', async () => {
  await using up = startUp({
    'tor.yaml': client({ socks: { port: 6697 } }),
    'proxy.yaml': document({
      apiVersion: 'tor.fr0st.dev/v1alpha1',
      kind: 'OnionProxy',
      metadata: { name: 'irc', namespace: 'client' },
      spec: {
        targets: [
          {
            name: 'libera',
            onion: 'libera75jm6of4wxpxt4aynol3xjmbtxgfyjpu34ss4d7r7q2v5zrpyd.onion',
            port: 6697,
            listenPort: 6697,
          },
        ],
      },
    }),
  })
  const kind = {
    apiVersion: 'tor.fr0st.dev/v1alpha1',
    kind: 'OnionProxy',
    plural: 'onionproxies',
    namespaced: true,
  }
  const ports = () => up.condition(kind, 'irc', 'PortsAccepted', 'client')
  await up.until('the loser to be told', () => ports()?.reason === 'PortTaken')
  assert.match(ports()!.message, /spec\.socks of the TorDaemon has listenPort 6697/)
  await up.until(
    'the port to be open',
    () => up.condition(TOR_DAEMON, 'tor', 'AccessReady', 'client')?.status === 'True',
    120_000,
  )
  up.write('tor.yaml', client({}))
  await up.until('the proxy to have its port', () => ports()?.status === 'True')
})

test("tor's guards outlive its pod and all of its folders", async () => {
  await using up = startUp({ 'tor.yaml': client({ persistence: {} }) })
  const bootstrapped = () => up.condition(TOR_DAEMON, 'tor', 'TorBootstrapped', 'client')?.status === 'True'
  await up.until('tor to be connected', bootstrapped, 120_000)
  const guards = (file: string): string[] =>
    [...file.matchAll(/^Guard in=default rsa_id=(\w+).* sampled_on=(\S+)/gm)].map((found) =>
      found.slice(1).join(' '),
    )
  const ended = once(up.process, 'exit')
  up.process.kill('SIGTERM')
  await ended
  const kept = guards(readFileSync(join(up.state, 'claims/client/tor-state/state'), 'utf8'))
  assert.ok(kept.length > 0, 'no guard was kept')
  rmSync(join(up.state, 'p'), { recursive: true })
  up.start()
  const file = await up.until(
    "the next pod's state",
    () => globSync('p/*/v/data/tor/state', { cwd: up.state })[0],
  )
  await up.until('tor to be connected again', bootstrapped, 120_000)
  const now = guards(readFileSync(join(up.state, file), 'utf8'))
  // When they were chosen says whether they are the same or were chosen once more.
  assert.deepEqual(
    kept.filter((guard) => !now.includes(guard)),
    [],
  )
})
