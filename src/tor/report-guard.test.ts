import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PosternError } from '../core/errors.ts'
import { guardReport } from './report-guard.ts'

const report = {
  version: 1,
  revision: 3,
  applied: '',
  tor: { running: true, bootstrapped: true, progress: 100, starts: 1 },
  onions: [{ name: 'web', address: 'a', state: 'published', lastUpload: 5 }],
  targets: [{ proxy: 'p', target: 't', listening: true, reachable: false }],
}
const bridge = { fingerprint: 'A'.repeat(40), state: 'dead', since: 5, reason: 'NoAnswer' }

const watched = {
  namespace: 'n',
  name: 'web',
  address: 'a',
  failures: 2,
  reachable: false,
  reason: 'TimedOut',
}

test('a report passes as it is', () => {
  const all = [watched, { ...watched, reachable: undefined, circuits: true, probed: 1, message: 'no' }]
  assert.equal(guardReport({ ...report, watched: all }).watched, all)
  assert.equal(guardReport(report), report)
  assert.equal(guardReport({ ...report, leaving: true }).leaving, true)
  for (const bridges of [[], [bridge, { ...bridge, state: 'unknown', reason: undefined }]]) {
    assert.equal(guardReport({ ...report, bridges }).bridges, bridges)
  }
})

test('another version, and every wrong shape, is refused by name', () => {
  const rows: [object, RegExp][] = [
    [{ version: 2 }, /version 2/],
    [{ revision: 'x' }, /revision/],
    [{ leaving: 'yes' }, /leaving/],
    [{ tor: { ...report.tor, progress: '100' } }, /tor\.progress/],
    [{ onions: {} }, /onions/],
    [{ onions: [{ ...report.onions[0], lastUpload: 'now' }] }, /lastUpload/],
    [{ targets: [{ ...report.targets[0], listening: 1 }] }, /listening/],
    [{ targets: [{ ...report.targets[0], reachable: 'yes' }] }, /reachable/],
    [{ access: {} }, /access/],
    [{ access: [{ name: 'dns', listening: true }] }, /access\.name/],
    [{ access: [{ name: 'socks', listening: 'yes' }] }, /access\.listening/],
    [{ access: [{ name: 'socks', listening: false, message: 1 }] }, /access\.message/],
    [{ bridges: {} }, /bridges/],
    [{ bridges: [{ ...bridge, fingerprint: 'obfs4 192.0.2.1:443' }] }, /bridges\.fingerprint/],
    [{ bridges: [{ ...bridge, fingerprint: 'a'.repeat(40) }] }, /bridges\.fingerprint/],
    [{ bridges: [{ ...bridge, state: 'fine' }] }, /bridges\.state/],
    [{ bridges: [{ ...bridge, since: 'now' }] }, /bridges\.since/],
    [{ bridges: [{ ...bridge, reason: 1 }] }, /bridges\.reason/],
    [{ watched: {} }, /watched/],
    [{ watched: Array.from({ length: 1_001 }, () => watched) }, /watched/],
    [{ watched: [{ ...watched, namespace: 1 }] }, /watched/],
    [{ watched: [{ ...watched, reachable: 'no' }] }, /watched\.reachable/],
    [{ watched: [{ ...watched, circuits: 1 }] }, /watched\.circuits/],
    [{ watched: [{ ...watched, reason: 'not a word' }] }, /watched\.reason/],
    [{ watched: [{ ...watched, message: 'x'.repeat(1_025) }] }, /watched\.message/],
    [{ watched: [{ ...watched, probed: 'now' }] }, /watched\.probed/],
    [{ watched: [{ ...watched, failures: -1 }] }, /watched\.failures/],
  ]
  for (const [wrong, says] of rows) assert.throws(() => guardReport({ ...report, ...wrong }), says)
})

test('whatever comes, it passes or is refused, and nothing else is thrown', () => {
  fc.assert(
    fc.property(fc.anything(), (document) => {
      try {
        guardReport(document)
      } catch (error) {
        assert.ok(error instanceof PosternError)
      }
    }),
  )
})
