import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCircuits } from './circuits.ts'

const RELAY = `$${'A'.repeat(40)}~one`

test('reads what tor lists, whichever words it leaves out, and nothing else', () => {
  const status = [
    `12 BUILT ${RELAY},${RELAY} BUILD_FLAGS=IS_INTERNAL PURPOSE=HS_SERVICE_REND HS_STATE=HSSR_JOINED REND_QUERY=abc TIME_CREATED=t\r`,
    '13 LAUNCHED BUILD_FLAGS=NEED_CAPACITY PURPOSE=GENERAL',
    '14 BUILT',
    '',
    'nonsense',
    '../15 BUILT',
  ]
  const nothing = { purpose: '', hsState: '', onion: '', path: [] }
  assert.deepEqual(readCircuits(status.join('\n')), [
    {
      id: '12',
      state: 'BUILT',
      purpose: 'HS_SERVICE_REND',
      hsState: 'HSSR_JOINED',
      onion: 'abc',
      path: [RELAY, RELAY],
    },
    { ...nothing, id: '13', state: 'LAUNCHED', purpose: 'GENERAL' },
    { ...nothing, id: '14', state: 'BUILT' },
  ])
  assert.deepEqual(readCircuits(''), [])
})
