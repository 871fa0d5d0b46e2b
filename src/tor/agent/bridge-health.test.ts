import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseEvent } from '../control/events.ts'
import {
  afterNews,
  type BridgeNews,
  type BridgeRecord,
  newsOfEvent,
  newsOfLists,
  untried,
} from './bridge-health.ts'

const BRIDGE = 'A'.repeat(40)
const RELAY = 'B'.repeat(40)

/** What tor 0.4.9 says for each kind of bridge: seconds, and the event. */
const rows: [name: string, says: [at: number, text: string][], state: string, since: number][] = [
  ['never tried', [[1, `GUARD ENTRY $${BRIDGE}~ NEW`]], 'unknown', 0],
  ['being tried', [[1, `ORCONN $${BRIDGE} LAUNCHED ID=1`]], 'unknown', 0],
  [
    'good',
    [
      [1, `ORCONN $${BRIDGE} LAUNCHED ID=1`],
      [2, `ORCONN $${BRIDGE} CONNECTED ID=1`],
      [3, `GUARD ENTRY $${BRIDGE}~door UP`],
    ],
    'healthy',
    2,
  ],
  [
    'refused, and again',
    [
      [1, `ORCONN $${BRIDGE} LAUNCHED ID=1`],
      [1, `GUARD ENTRY $${BRIDGE}~ DOWN`],
      [4, `ORCONN $${BRIDGE} LAUNCHED ID=2`],
      [4, `GUARD ENTRY $${BRIDGE}~ DOWN`],
    ],
    'dead Unreachable',
    1,
  ],
  [
    'silent, or the wrong certificate',
    [
      [1, `ORCONN $${BRIDGE} LAUNCHED ID=1`],
      [32, `GUARD ENTRY $${BRIDGE}~ DOWN`],
    ],
    'dead NoAnswer',
    32,
  ],
  [
    'the wrong fingerprint',
    [
      [1, `ORCONN $${BRIDGE} LAUNCHED ID=1`],
      [2, `ORCONN $${BRIDGE} FAILED REASON=IDENTITY NCIRCS=1 ID=1`],
      [2, `ORCONN $${BRIDGE} FAILED REASON=DONE ID=1`],
      [2, `GUARD ENTRY $${BRIDGE}~ DOWN`],
    ],
    'dead FingerprintMismatch',
    2,
  ],
  [
    'no relay behind it',
    [
      [1, `ORCONN $${BRIDGE} LAUNCHED ID=1`],
      [2, `ORCONN $${BRIDGE} FAILED REASON=TLS_ERROR ID=1`],
    ],
    'dead HandshakeFailed',
    2,
  ],
  [
    'an idle connection ended',
    [
      [1, `ORCONN $${BRIDGE} CONNECTED ID=1`],
      [9, `ORCONN $${BRIDGE}~door CLOSED REASON=DONE ID=1`],
    ],
    'healthy',
    1,
  ],
  [
    'died while used',
    [
      [1, `ORCONN $${BRIDGE} CONNECTED ID=1`],
      [9, `ORCONN $${BRIDGE}~door CLOSED REASON=TLS_ERROR ID=1`],
      [10, `ORCONN $${BRIDGE}~door LAUNCHED ID=2`],
      [10, `GUARD ENTRY $${BRIDGE}~door DOWN`],
    ],
    'dead Unreachable',
    10,
  ],
  [
    'fell silent while used: its connection stays open',
    [
      [1, `ORCONN $${BRIDGE} CONNECTED ID=1`],
      [26, `GUARD ENTRY $${BRIDGE}~door DOWN`],
      [40, `ORCONN $${BRIDGE}~door LAUNCHED ID=2`],
    ],
    'dead NoAnswer',
    26,
  ],
  [
    'came back',
    [
      [1, `ORCONN $${BRIDGE} LAUNCHED ID=1`],
      [1, `GUARD ENTRY $${BRIDGE}~ DOWN`],
      [5, `ORCONN $${BRIDGE} LAUNCHED ID=2`],
      [6, `ORCONN $${BRIDGE} CONNECTED ID=2`],
      [7, `GUARD ENTRY $${BRIDGE}~door UP`],
    ],
    'healthy',
    6,
  ],
  [
    'another reason is no other state',
    [
      [1, `ORCONN $${BRIDGE} LAUNCHED ID=1`],
      [1, `GUARD ENTRY $${BRIDGE}~ DOWN`],
      [5, `ORCONN $${BRIDGE} LAUNCHED ID=2`],
      [36, `GUARD ENTRY $${BRIDGE}~ DOWN`],
    ],
    'dead NoAnswer',
    1,
  ],
  [
    'of the second hop, and of others',
    [
      [1, `GUARD ENTRY $${BRIDGE}~door GOOD_L2`],
      [2, `GUARD ENTRY $${BRIDGE}~door BAD_L2`],
      [3, `GUARD ENTRY $${BRIDGE}~door DROPPED`],
      [4, `ORCONN 192.0.2.1:443 FAILED REASON=DONE ID=1`],
      [5, `GUARD ENTRY $${RELAY}~relay DOWN`],
    ],
    'unknown',
    0,
  ],
]
for (const [name, says, state, since] of rows) {
  test(`a bridge that is ${name}`, () => {
    let record = untried(0)
    for (const [at, text] of says) {
      const said = newsOfEvent(
        parseEvent({ kind: 'event', code: 650, lines: [{ code: 650, separator: ' ', text }] }),
      )
      if (said?.fingerprint === BRIDGE) record = afterNews(record, said.news, at * 1000)
    }
    assert.equal([record.state, record.reason].join(' ').trim(), state)
    assert.equal(record.since, since * 1000)
  })
}

const lists: [name: string, connections: string, guards: string, news: string | undefined][] = [
  ['in neither', '', '', undefined],
  ['connected', `$${BRIDGE}~door CONNECTED`, `$${BRIDGE}~door up`, 'reached'],
  ['only launched', `$${BRIDGE} LAUNCHED`, `$${BRIDGE} never-connected`, undefined],
  ['up in a former life', '', `$${BRIDGE}~door up`, undefined],
  ['down', `$${RELAY}~r CONNECTED`, `$${BRIDGE}~door down 2026-12-01 09:26:58`, 'down'],
  ['connected, and silent', `$${BRIDGE}~door CONNECTED`, `$${BRIDGE}~door down 2026-12-01 09:26:58`, 'down'],
  [
    'down by one line and up by another',
    `$${BRIDGE}~door CONNECTED`,
    `$${BRIDGE}~door down 2026-12-01 09:26:58\n$${BRIDGE}~door up`,
    'reached',
  ],
]
for (const [name, connections, guards, news] of lists) {
  test(`a bridge that is ${name} in tor's lists`, () => {
    assert.equal(newsOfLists(connections, guards).get(BRIDGE)?.type, news)
  })
}

test('whatever tor says: healthy or dead by the last word that decides, since no later than it', () => {
  const word = fc.oneof(
    fc.constantFrom<BridgeNews>({ type: 'launched' }, { type: 'reached' }, { type: 'down' }),
    fc.record({ type: fc.constant('failed' as const), reason: fc.string() }),
  )
  fc.assert(
    fc.property(fc.array(word), (words) => {
      let record: BridgeRecord = untried(0)
      words.forEach((news, at) => {
        record = afterNews(record, news, at)
      })
      const last = words.findLast(({ type }) => type !== 'launched')
      const state = last === undefined ? 'unknown' : last.type === 'reached' ? 'healthy' : 'dead'
      assert.equal(record.state, state)
      assert.equal(record.reason === undefined, state !== 'dead')
      assert.ok(last === undefined || record.since <= words.lastIndexOf(last))
    }),
  )
})
