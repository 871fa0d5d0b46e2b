import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { SILENT } from '../../core/logger.ts'
import type { ControlClient } from '../control/client.ts'
import { startTestTor } from '../control/testing-tor.ts'
import { AccessPorts, portValue } from './access-ports.ts'
import { freePort } from './metrics-port.ts'

const skip = existsSync('/usr/bin/tor') ? false : 'tor is not installed: apt-get install tor'
const NOWHERE = `DirAuthority nowhere orport=1 no-v2 v3ident=${'A'.repeat(40)} 127.0.0.1:1 ${'B'.repeat(40)}`

interface Stage extends AsyncDisposable {
  access: AccessPorts
  control: ControlClient
  own: string[]
  host: string
  /** Every SETCONF that was sent, as text. */
  sent: string[]
  until(what: string, look: () => boolean | Promise<boolean>): Promise<void>
  sockets(): Promise<string[]>
}

/** A tor on an address of its own, whose network leads nowhere. */
async function stage(host = '127.77.250.9'): Promise<Stage> {
  const tor = await startTestTor(() => [NOWHERE])
  const control = await tor.client()
  const own = [`unix:${join(tor.directory, 's')}`, `unix:${join(tor.directory, 'x')} ExtendedErrors`]
  await control.setConf(own.map((value) => ['SocksPort', value]))
  const sent: string[] = []
  const access = new AccessPorts({ host, socks: own, log: SILENT, onChange() {}, retryMs: 20 })
  access.attach({
    getConf: (...names) => control.getConf(...names),
    getInfo: (...keys) => control.getInfo(...keys),
    setConf(entries) {
      sent.push(entries.map(([name, value]) => `${name}=${value ?? ''}`).join(' '))
      return control.setConf(entries)
    },
  })
  await access.look()
  return {
    access,
    control,
    own,
    host,
    sent,
    async until(what, look) {
      for (const end = Date.now() + 20_000; !(await look()); await pause(10)) {
        if (Date.now() > end) assert.fail(`not in time: ${what}; saw ${JSON.stringify(access.states)}`)
      }
    },
    async sockets() {
      return ((await control.getConf('SocksPort')).SocksPort ?? []).filter((one) => !own.includes(one))
    },
    async [Symbol.asyncDispose]() {
      access.close()
      await control.close()
      await tor[Symbol.asyncDispose]()
    },
  }
}

/** What a port says to one who asks for a name of the open web: the code of SOCKS, or the status of HTTP. */
async function askSocks(host: string, port: number): Promise<number> {
  const socket = connect({ host, port })
  try {
    socket.write(Uint8Array.of(5, 1, 0))
    await once(socket, 'data')
    const name = Buffer.from('example.com')
    socket.write(Buffer.concat([Uint8Array.of(5, 1, 0, 3, name.length), name, Uint8Array.of(0, 80)]))
    const [answer] = (await Promise.race([once(socket, 'data'), pause(1500, [Buffer.of(5, 255)])])) as [
      Buffer,
    ]
    return answer[1]!
  } finally {
    socket.destroy()
  }
}

async function askHttp(host: string, port: number): Promise<string> {
  const socket = connect({ host, port })
  try {
    socket.write('CONNECT example.com:80 HTTP/1.1\r\n\r\n')
    const [answer] = (await once(socket, 'data')) as [Buffer]
    return answer.toString().split('\r\n')[0]!
  } finally {
    socket.destroy()
  }
}

test('a port is for onions alone unless it is said otherwise', () => {
  const isolation = 'IsolateClientAddr IsolateSOCKSAuth'
  assert.equal(
    portValue('10.0.0.7:9050', { port: 9050, exit: 'Onions' }),
    `10.0.0.7:9050 ${isolation} OnionTrafficOnly`,
  )
  assert.equal(portValue('10.0.0.7:9050', { port: 9050, exit: 'All' }), `10.0.0.7:9050 ${isolation}`)
})

test('ports open with the network, beside the own sockets, and close with it', { skip }, async () => {
  await using it = await stage()
  const { access, control, host } = it
  const [socks, http] = [await freePort(host), await freePort(host)]
  access.want({ socks: { port: socks, exit: 'Onions' }, httpConnect: { port: http, exit: 'Onions' } })
  await access.look()
  // A port that is configured and cannot be opened would keep the network off.
  assert.deepEqual(await it.sockets(), [])
  assert.deepEqual(
    access.states?.map(({ listening, message }) => [listening, message]),
    [
      [false, undefined],
      [false, undefined],
    ],
  )
  await control.setConf([['DisableNetwork', '0']])
  await access.look()
  assert.ok(
    access.states!.every(({ listening }) => listening),
    JSON.stringify(access.states),
  )
  assert.equal(await askSocks(host, socks), 2)
  assert.match(await askHttp(host, http), /403/)
  const open = (await control.getInfo('net/listeners/socks'))['net/listeners/socks']!
  assert.equal(open.match(/unix:/g)?.length, 2, open)
  assert.doesNotMatch(open, /0\.0\.0\.0/)

  await control.setConf([['DisableNetwork', '1']])
  await access.look()
  assert.deepEqual(await it.sockets(), [])
  access.want(undefined)
  assert.equal(access.states, undefined)
})

test('what a port lets through changes at once, in both directions', { skip }, async () => {
  await using it = await stage('127.77.250.10')
  const { access, control, host } = it
  await control.setConf([['DisableNetwork', '0']])
  const port = await freePort(host)
  const refused = async (exit: 'Onions' | 'All'): Promise<boolean> => {
    access.want({ socks: { port, exit } })
    await access.look()
    assert.ok(access.states![0]!.listening, JSON.stringify(access.states))
    return (await askSocks(host, port)) === 2
  }
  assert.equal(await refused('Onions'), true)
  // Without a network there is nobody to ask, so it waits.
  assert.equal(await refused('All'), false)
  assert.equal(await refused('Onions'), true)
  const before = it.sent.length
  await access.look()
  assert.equal(it.sent.length, before, 'nothing is sent for what is so already')
})

test('streams of workloads are counted, without those that are told of', { skip }, async () => {
  await using it = await stage('127.77.250.12')
  const { access, control, host } = it
  await control.setConf([['DisableNetwork', '0']])
  const port = await freePort(host)
  access.want({ httpConnect: { port, exit: 'All' } })
  await access.look()
  const socket = connect({ host, port })
  socket.write('CONNECT example.com:80 HTTP/1.1\r\n\r\n')
  const counted = async (others: number): Promise<number> => {
    await access.count(others)
    return access.streams
  }
  await it.until('the stream', async () => (await counted(0)) === 1)
  assert.equal(await counted(1), 0)
  socket.destroy()
  await it.until('its end', async () => (await counted(0)) === 0)
  access.detach()
  assert.equal(await counted(0), 0)
})

test('a port that is taken is told, costs nothing else, and is opened once it is free', {
  skip,
}, async () => {
  await using it = await stage('127.77.250.11')
  const { access, control, host, own } = it
  const squatter = createServer().listen(0, host)
  await once(squatter, 'listening')
  const { port } = squatter.address() as AddressInfo
  await control.setConf([['DisableNetwork', '0']])
  access.want({ socks: { port, exit: 'Onions' }, httpConnect: { port: await freePort(host), exit: 'All' } })
  await it.until('the refusal', () => access.states?.[0]?.message !== undefined)
  assert.match(access.states![0]!.message!, new RegExp(`tor cannot listen on ${host}:${port}: .*bind`))
  await it.until('the other port', () => access.states?.[1]?.listening === true)
  assert.deepEqual((await control.getConf('SocksPort')).SocksPort, own)
  // The network can be turned off and on all the same.
  await control.setConf([['DisableNetwork', '1']])
  await access.look()
  await control.setConf([['DisableNetwork', '0']])
  await access.look()
  await new Promise((done) => squatter.close(done))
  await it.until('the port', () => access.states?.[0]?.listening === true)
  assert.equal(access.states![0]!.message, undefined)
})

test('a port that nothing opens stays shut', { skip }, async () => {
  await using it = await stage('0.0.0.0')
  await it.control.setConf([['DisableNetwork', '0']])
  it.access.want({ socks: { port: await freePort('127.0.0.1'), exit: 'All' } })
  await it.access.look()
  assert.deepEqual(await it.sockets(), [])
  assert.equal(it.access.states![0]!.listening, false)
  assert.match(it.access.states![0]!.message!, /not the address of one pod/)
})
