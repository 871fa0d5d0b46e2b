import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseEvent, type TorEvent } from './events.ts'
import { ControlParser } from './parser.ts'

const ADDRESS = '2gzyxa5ihm7nsggfxnu52rck2vv4rvmdlkiu3zzui5du4xyclen53wid'
const BLINDED = 'vJ1CGpZ8BSsY8xMHqZx0G0ZNkGzWcQkHPN2PvGWcYxs'
const FINGERPRINT = 'A1B2'.repeat(10)

function event(text: string): TorEvent {
  const [message] = new ControlParser().push(Buffer.from(`650 ${text}\r\n`))
  assert.ok(message)
  return parseEvent(message)
}

test('HS_DESC', () => {
  const base = { type: 'HS_DESC', address: ADDRESS }
  const relay = `$${FINGERPRINT}~relay1`
  assert.deepEqual(event(`HS_DESC CREATED ${ADDRESS} UNKNOWN UNKNOWN ${BLINDED}`), {
    ...base,
    action: 'CREATED',
    blinded: BLINDED,
  })
  assert.deepEqual(event(`HS_DESC UPLOAD ${ADDRESS} UNKNOWN ${relay} ${BLINDED} HSDIR_INDEX=00FF`), {
    ...base,
    action: 'UPLOAD',
    hsdir: FINGERPRINT,
    blinded: BLINDED,
  })
  assert.deepEqual(event(`HS_DESC UPLOADED ${ADDRESS} UNKNOWN ${relay}`), {
    ...base,
    action: 'UPLOADED',
    hsdir: FINGERPRINT,
  })
  assert.deepEqual(event(`HS_DESC FAILED ${ADDRESS} NO_AUTH ${relay} ${BLINDED} REASON=UPLOAD_REJECTED`), {
    ...base,
    action: 'FAILED',
    hsdir: FINGERPRINT,
    blinded: BLINDED,
    reason: 'UPLOAD_REJECTED',
  })
  for (const action of ['REQUESTED', 'RECEIVED']) {
    assert.deepEqual(event(`HS_DESC ${action} ${ADDRESS} NO_AUTH ${relay} ${BLINDED}`), {
      ...base,
      action,
      hsdir: FINGERPRINT,
      blinded: BLINDED,
    })
  }
})

test('STATUS_CLIENT and STATUS_GENERAL', () => {
  const text = 'WARN BOOTSTRAP PROGRESS=10 TAG=conn_done SUMMARY="Connected to \\"a\\" relay" COUNT=3'
  assert.deepEqual(event(`STATUS_CLIENT ${text}`), {
    type: 'STATUS_CLIENT',
    severity: 'WARN',
    action: 'BOOTSTRAP',
    args: { PROGRESS: '10', TAG: 'conn_done', SUMMARY: 'Connected to "a" relay', COUNT: '3' },
  })
  assert.deepEqual(event('STATUS_GENERAL NOTICE CLOCK_JUMPED TIME=120'), {
    type: 'STATUS_GENERAL',
    severity: 'NOTICE',
    action: 'CLOCK_JUMPED',
    args: { TIME: '120' },
  })
  assert.deepEqual(event('STATUS_CLIENT NOTICE ENOUGH_DIR_INFO'), {
    type: 'STATUS_CLIENT',
    severity: 'NOTICE',
    action: 'ENOUGH_DIR_INFO',
    args: {},
  })
})

test('ORCONN, GUARD and NETWORK_LIVENESS', () => {
  assert.deepEqual(event(`ORCONN $${FINGERPRINT}~bridge LAUNCHED ID=4`), {
    type: 'ORCONN',
    target: `$${FINGERPRINT}~bridge`,
    fingerprint: FINGERPRINT,
    status: 'LAUNCHED',
  })
  assert.deepEqual(event('ORCONN 192.0.2.1:443 FAILED REASON=CONNECTREFUSED NCIRCS=1 ID=5'), {
    type: 'ORCONN',
    target: '192.0.2.1:443',
    status: 'FAILED',
    reason: 'CONNECTREFUSED',
  })
  const guard = { type: 'GUARD', kind: 'ENTRY', fingerprint: FINGERPRINT }
  assert.deepEqual(event(`GUARD ENTRY $${FINGERPRINT}~relay DOWN`), { ...guard, status: 'DOWN' })
  assert.deepEqual(event(`GUARD ENTRY $${FINGERPRINT}=relay GOOD_L2`), { ...guard, status: 'GOOD_L2' })
  assert.deepEqual(event(`GUARD ENTRY $${FINGERPRINT.toLowerCase()} UP`), { ...guard, status: 'UP' })
  assert.deepEqual(event('NETWORK_LIVENESS UP'), { type: 'NETWORK_LIVENESS', up: true })
  assert.deepEqual(event('NETWORK_LIVENESS DOWN'), { type: 'NETWORK_LIVENESS', up: false })
})

test('what is unknown or odd is passed on as text', () => {
  const texts = [
    'WARN The log, "as it is',
    'TRANSPORT_LAUNCHED client obfs4 127.0.0.1 4444',
    'HS_DESC',
    'HS_DESC DANCED a b c',
    'STATUS_CLIENT NOTICE',
    'STATUS_CLIENT WARN BOOTSTRAP SUMMARY="unfinished',
    'ORCONN x',
    'GUARD ENTRY x',
    'NETWORK_LIVENESS SIDEWAYS',
    'constructor x',
    '__proto__ x',
  ]
  for (const text of texts) {
    const at = text.indexOf(' ')
    const name = at < 0 ? text : text.slice(0, at)
    assert.deepEqual(event(text), { type: 'other', name, text: at < 0 ? '' : text.slice(at + 1) }, text)
  }
  const [message] = new ControlParser().push(Buffer.from('650+HS_DESC_CONTENT a\r\nx\r\n.\r\n650 OK\r\n'))
  assert.ok(message)
  assert.deepEqual(parseEvent(message), { type: 'other', name: 'HS_DESC_CONTENT', text: 'a', data: 'x' })
})
