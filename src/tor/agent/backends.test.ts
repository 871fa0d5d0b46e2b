import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { SILENT } from '../../core/logger.ts'
import { Backends } from './backends.ts'

test('an error is forgotten when the endpoints change, without a visitor, and stays while they do not', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'be-'))
  let changes = 0
  const backends = new Backends({
    folder: join(folder, 'o'),
    log: SILENT,
    onChange: () => {
      changes += 1
    },
  })
  try {
    const [mapping] = await backends.open('a', [{ virtualPort: 80, endpoints: [] }])
    connect(mapping!.target.slice('unix:'.length))
      .on('error', () => {})
      .resume()
    const end = performance.now() + 10_000
    while (backends.state('a').error === undefined) {
      assert.ok(performance.now() < end, 'no error within 10 s')
      await pause(5)
    }
    backends.update('a', [{ virtualPort: 80, endpoints: [] }])
    assert.match(backends.state('a').error ?? '', /no endpoint/)
    assert.equal(changes, 1)
    backends.update('a', [{ virtualPort: 80, endpoints: [{ host: '127.0.0.1', port: 1 }] }])
    assert.equal(backends.state('a').error, undefined)
    assert.equal(changes, 2)
  } finally {
    await backends.close(0)
    rmSync(folder, { recursive: true, force: true })
  }
})

test('bytes are counted both ways, of ports that are closed too, until the onion goes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'be-'))
  const backends = new Backends({ folder: join(folder, 'o'), log: SILENT, onChange: () => {} })
  const server = createServer((socket) =>
    socket.on('error', () => {}).once('data', () => socket.end('answer')),
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const endpoints = [{ host: '127.0.0.1', port: (server.address() as AddressInfo).port }]
  try {
    const ports = [80, 81].map((virtualPort) => ({ virtualPort, endpoints }))
    const mappings = await backends.open('a', ports)
    assert.deepEqual(backends.traffic('a'), { bytesIn: 0, bytesOut: 0 })
    for (const { target } of mappings) {
      const visitor = connect(target.slice('unix:'.length)).resume()
      visitor.write('ask')
      await once(visitor, 'close')
    }
    const all = { bytesIn: 6, bytesOut: 12 }
    assert.deepEqual(backends.traffic('a'), all)
    await backends.keep('a', [81])
    assert.deepEqual(backends.traffic('a'), all, 'a counter does not go back')
    await backends.keep('a', [])
    assert.deepEqual(backends.traffic('a'), { bytesIn: 0, bytesOut: 0 })
    await backends.open('a', ports)
    assert.deepEqual(backends.traffic('a'), { bytesIn: 0, bytesOut: 0 })
  } finally {
    server.close()
    await backends.close(0)
    rmSync(folder, { recursive: true, force: true })
  }
})
