import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
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
