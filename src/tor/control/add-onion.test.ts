import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CLIENTS_LIMIT } from '../limits.ts'
import { type AddOnion, addOnionCommand } from './add-onion.ts'

const key = `ED25519-V3:${'A'.repeat(86)}==`
const ports = [{ virtualPort: 80, target: 'unix:/run/onion.sock' }]
const client = 'A'.repeat(52)

test('the command names everything that is asked for', () => {
  assert.equal(addOnionCommand({ key, ports }), `ADD_ONION ${key} Port=80,unix:/run/onion.sock`)
  const all: AddOnion = {
    key,
    ports: [...ports, { virtualPort: 443, target: '[::1]:8443' }],
    flags: ['Detach', 'DiscardPK'],
    clients: [client],
    maxStreams: 5,
    pow: { queueRate: 250, queueBurst: 2500 },
  }
  assert.equal(
    addOnionCommand(all),
    `ADD_ONION ${key} Flags=Detach,DiscardPK,V3Auth MaxStreams=5 PoWDefensesEnabled=1 PoWQueueRate=250 PoWQueueBurst=2500 Port=80,unix:/run/onion.sock Port=443,[::1]:8443 ClientAuthV3=${client}`,
  )
})

test('a target is an address or a socket, never a name', () => {
  for (const target of ['80', '127.0.0.1:80', '[fd00::1]:65535', 'unix:/a']) {
    assert.ok(addOnionCommand({ key, ports: [{ virtualPort: 1, target }] }).endsWith(`Port=1,${target}`))
  }
  const wrong = [
    '',
    'web:80',
    '127.0.0.1',
    '127.0.0.1:0',
    '::1:80',
    '[::1]',
    '1:70000',
    'unix:a',
    'unix:/a b',
    '1 Port=2',
    '1\r\nQUIT',
  ]
  for (const target of wrong) {
    assert.throws(() => addOnionCommand({ key, ports: [{ virtualPort: 1, target }] }), {
      code: 'ControlArgument',
    })
  }
})

test('what tor would refuse or take wrongly is not sent, and the key is never told', () => {
  const wrong: AddOnion[] = [
    { key: `${key} X=1`, ports },
    { key: `ED25519-V3:${'A'.repeat(43)}=`, ports },
    { key, ports: [] },
    { key, ports: [{ virtualPort: 0, target: '1' }] },
    { key, ports: [{ virtualPort: 1.5, target: '1' }] },
    { key, ports, flags: ['Detach,V3Auth'] },
    { key, ports, clients: ['short'] },
    { key, ports, clients: Array(CLIENTS_LIMIT + 1).fill(client) },
    { key, ports, maxStreams: -1 },
    { key, ports, pow: { queueRate: Number.NaN } },
  ]
  for (const onion of wrong) {
    assert.throws(
      () => addOnionCommand(onion),
      (error: Error & { code?: string }) =>
        error.code === 'ControlArgument' && !error.message.includes('AAAA'),
    )
  }
})
