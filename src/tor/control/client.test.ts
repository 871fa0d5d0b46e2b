import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { controlKey, generateOnionKey } from '../onion/key.ts'
import { ControlClient } from './client.ts'
import { ControlError } from './errors.ts'
import { startTestTor, type TestTor } from './testing-tor.ts'

let tor: TestTor
before(async () => {
  tor = await startTestTor()
})
after(() => tor[Symbol.asyncDispose]())

const port = { virtualPort: 80, target: '127.0.0.1:8080' }

async function until(what: string, holds: () => boolean): Promise<void> {
  for (const end = Date.now() + 10_000; !holds(); await delay(5)) {
    if (Date.now() > end) assert.fail(`${what} did not come`)
  }
}

function refused(status: number): (error: unknown) => boolean {
  return (error) =>
    error instanceof ControlError && error.code === 'ControlRefused' && error.status === status
}

test('authenticates by SAFECOOKIE and says what tor told', async () => {
  await using client = await ControlClient.connect(tor.control)
  const info = await client.authenticate()
  assert.equal(info.cookieFile, tor.cookieFile)
  assert.ok(info.methods.includes('SAFECOOKIE'))
  assert.match(info.torVersion ?? '', /^\d+\.\d+\.\d+/)
  const { version } = await client.getInfo('version')
  assert.ok(version?.startsWith(info.torVersion ?? '?'))
})

test('a wrong, a short and a missing cookie fail, and the connection closes', async () => {
  const wrong = join(tor.directory, 'wrong')
  const cases: [string, string][] = [
    ['ControlCookieMismatch', wrong],
    ['ControlCookieUnreadable', join(tor.directory, 'short')],
    ['ControlCookieUnreadable', join(tor.directory, 'none')],
    ['ControlCookieUnreadable', '/dev/zero'],
  ]
  await writeFile(wrong, randomBytes(32))
  await writeFile(join(tor.directory, 'short'), randomBytes(31))
  for (const [code, cookieFile] of cases) {
    await using client = await ControlClient.connect(tor.control)
    await assert.rejects(client.authenticate({ cookieFile }), { code })
    assert.equal(await client.closed, undefined)
    await assert.rejects(client.getInfo('version'), { code: 'ControlClosed' })
  }
})

test('nothing but authentication is allowed before it', async () => {
  await using client = await ControlClient.connect(tor.control)
  await assert.rejects(client.getInfo('version'), refused(514))
  assert.ok((await client.closed) instanceof Error)
})

test('a tor that asks for nothing is authenticated with nothing', async () => {
  await using open = await startTestTor(() => ['CookieAuthentication 0'])
  await using client = await ControlClient.connect(open.control)
  assert.deepEqual((await client.authenticate()).methods, ['NULL'])
  assert.ok((await client.getInfo('version')).version)
})

test('a port where nothing listens cannot be reached, and a signal stops the try', async () => {
  await assert.rejects(ControlClient.connect({ path: join(tor.directory, 'nothing') }), {
    code: 'ControlUnreachable',
  })
  const reason = new Error('stop')
  await assert.rejects(ControlClient.connect(tor.control, { signal: AbortSignal.abort(reason) }), reason)
})

test('GETINFO gives several keys, in both forms', async () => {
  await using client = await tor.client()
  const info = await client.getInfo('version', 'process/pid', 'config-text', 'onions/current')
  assert.deepEqual(Object.keys(info).sort(), ['config-text', 'onions/current', 'process/pid', 'version'])
  assert.equal(Number(info['process/pid']), tor.process.pid)
  assert.match(info['config-text'] ?? '', /^DisableNetwork 1$/m)
  assert.match(info['config-text'] ?? '', /\n/)
  assert.equal(info['onions/current'], '')
  assert.deepEqual(await client.getInfo(), {})
  await assert.rejects(client.getInfo('version', 'nonsense'), refused(552))
  await assert.rejects(client.getInfo('version\r\nSIGNAL HALT'), { code: 'ControlArgument' })
})

test('SETCONF is all or nothing, keeps every character and repeats a name', async () => {
  await using client = await tor.client()
  const bridges = ['192.0.2.1:443', '[2001:db8::1]:443']
  const contact = 'a "b" \\ c # d = é \t e'
  await client.setConf([['ContactInfo', contact], ...bridges.map((bridge) => ['Bridge', bridge] as const)])
  assert.deepEqual(await client.getConf('ContactInfo', 'bridge'), { ContactInfo: [contact], Bridge: bridges })

  const change: [string, string][] = [
    ['ContactInfo', 'changed'],
    ['MaxCircuitDirtiness', 'soon'],
  ]
  await assert.rejects(client.setConf(change), refused(513))
  await assert.rejects(
    client.setConf([
      ['ContactInfo', 'changed'],
      ['NoSuchOption', '1'],
    ]),
    refused(552),
  )
  assert.deepEqual((await client.getConf('ContactInfo')).ContactInfo, [contact])

  await client.setConf([
    ['ContactInfo', undefined],
    ['Bridge', undefined],
  ])
  assert.deepEqual(await client.getConf('ContactInfo', 'Bridge'), { ContactInfo: [], Bridge: [] })
  await client.setConf([['MaxCircuitDirtiness', '700']])
  await client.resetConf('MaxCircuitDirtiness')
  assert.deepEqual(await client.getConf('MaxCircuitDirtiness'), { MaxCircuitDirtiness: ['600'] })

  for (const [name, value] of [
    ['ContactInfo', 'a\r\nSIGNAL HALT'],
    ['Contact Info', 'a'],
    ['A\n', 'a'],
  ] as const) {
    await assert.rejects(client.setConf([[name, value]]), { code: 'ControlArgument' })
  }
  await client.setConf([])
})

test('an onion is added once, has the derived address, and is deleted in any spelling', async () => {
  await using client = await tor.client()
  const key = generateOnionKey()
  const onion = { key: controlKey(key.secret), ports: [port, { virtualPort: 443, target: 'unix:/nowhere' }] }
  assert.deepEqual(await client.addOnion(onion), { serviceId: key.address })
  await assert.rejects(client.addOnion(onion), (error: unknown) => {
    assert.ok(refused(550)(error))
    assert.ok(!String(error).includes(onion.key.slice(11)))
    return true
  })
  assert.equal((await client.getInfo('onions/current'))['onions/current'], key.address)
  await client.delOnion(`${key.address.toUpperCase()}.onion`)
  await assert.rejects(client.delOnion(key.address), refused(552))
  await assert.rejects(client.delOnion('x'), { code: 'ControlArgument' })
})

test('an onion with clients, proof of work and a limit is taken', async () => {
  await using client = await tor.client()
  const key = generateOnionKey()
  const added = await client.addOnion({
    key: controlKey(key.secret),
    ports: [port],
    flags: ['DiscardPK', 'MaxStreamsCloseCircuit'],
    clients: ['dw7bhzqddcyhs6ylm4f7uabc3kuonrkjdyp5cmp3gcrj6zifwfua'],
    maxStreams: 3,
    pow: { queueRate: 100, queueBurst: 200 },
  })
  assert.equal(added.serviceId, key.address)
})

test('detached onions outlive their connection and are listed as a block; others do not', async () => {
  const keys = [generateOnionKey(), generateOnionKey()]
  const fleeting = generateOnionKey()
  {
    await using client = await tor.client()
    for (const key of keys) {
      await client.addOnion({ key: controlKey(key.secret), ports: [port], flags: ['Detach', 'DiscardPK'] })
    }
    await client.addOnion({ key: controlKey(fleeting.secret), ports: [port] })
  }
  await using client = await tor.client()
  const listed = (await client.getInfo('onions/detached'))['onions/detached']?.split('\n')
  assert.deepEqual(listed?.sort(), keys.map((key) => key.address).sort())
  for (const key of keys) await client.delOnion(key.address)
  assert.equal((await client.getInfo('onions/detached'))['onions/detached'], '')
})

test('many commands at once are answered in their order', async () => {
  await using client = await tor.client()
  const pid = String(tor.process.pid)
  const replies = await Promise.all(
    Array.from({ length: 60 }, async (_, i) => {
      if (i % 3 === 0) return (await client.getInfo('process/pid'))['process/pid'] === pid
      if (i % 3 === 1) return 'DisableNetwork' in (await client.getConf('DisableNetwork'))
      return await client.getInfo(`nonsense/${i}`).then(
        () => false,
        (error: ControlError) => error.text.includes(`nonsense/${i}`),
      )
    }),
  )
  assert.deepEqual(new Set(replies), new Set([true]))
})

test('events come between replies, and an unknown one changes nothing', async () => {
  await using client = await tor.client()
  const seen: string[] = []
  const stop = client.onEvent((event) => {
    if (event.type === 'HS_DESC') seen.push(`${event.action} ${event.address}`)
    if (event.type === 'other') seen.push(event.name)
  })
  await client.setEvents(['HS_DESC', 'CONF_CHANGED'])
  await assert.rejects(client.setEvents(['HS_DESC', 'NO_SUCH_EVENT']), refused(552))
  const names = ['one', 'two', 'three']
  await Promise.all([
    ...names.map((name) => client.setConf([['ContactInfo', name]])),
    ...names.map(() => client.getInfo('config-text')),
  ])
  await until('CONF_CHANGED', () => seen.filter((name) => name === 'CONF_CHANGED').length === 3)
  stop()
  await client.setConf([['ContactInfo', 'four']])
  await client.getInfo('version')
  assert.equal(seen.length, 3)
  await assert.rejects(client.setEvents(['A B']), { code: 'ControlArgument' })
  await client.setEvents([])
})

test('a data block is sent with its dots', async () => {
  await using client = await tor.client()
  await client.command('LOADCONF', {
    data: `${await readFile(join(tor.directory, 'torrc'), 'utf8')}\nContactInfo loaded\n`,
  })
  assert.deepEqual(await client.getConf('ContactInfo'), { ContactInfo: ['loaded'] })
  await assert.rejects(client.command('GETINFO', { data: '.\r\n..\nversion' }), ControlError)
  assert.ok((await client.getInfo('version')).version)
})

test('what is no command is not sent', async () => {
  await using client = await tor.client()
  for (const line of [
    '',
    ' GETINFO version',
    'GETINFO version\r\nQUIT',
    'GETINFO\0',
    `GETINFO ${'a'.repeat(1 << 20)}`,
  ]) {
    await assert.rejects(client.command(line), { code: 'ControlArgument' })
  }
  await client.signal('RELOAD')
  await assert.rejects(client.signal('DANCE'), refused(552))
  await assert.rejects(client.signal('A\r\n'), { code: 'ControlArgument' })
})

test('close rejects what waits, and says nothing went wrong', async () => {
  const client = await tor.client()
  const waiting = [client.getInfo('version'), client.getInfo('config-text')]
  const closing = client.close()
  for (const command of waiting) await assert.rejects(command, { code: 'ControlClosed' })
  await closing
  await client.close()
  assert.equal(await client.closed, undefined)
  await assert.rejects(client.getInfo('version'), { code: 'ControlClosed' })
})

test('the end of tor closes the connection with an error', async () => {
  await using doomed = await startTestTor()
  await using client = await doomed.client()
  doomed.process.kill('SIGSTOP')
  const waiting = client.getInfo('version')
  doomed.process.kill('SIGKILL')
  await assert.rejects(waiting, { code: 'ControlClosed' })
  assert.equal(((await client.closed) as { code?: string }).code, 'ControlClosed')
})

test('an owned tor ends with the connection of its owner, and with no other', async () => {
  await using owned = await startTestTor()
  const owner = await owned.client()
  await owner.takeOwnership()
  await (await owned.client()).close()
  assert.ok((await owner.getInfo('version')).version)
  assert.equal(owned.process.exitCode, null)
  await owner.close()
  assert.equal(await owned.exited(), 0)
})
