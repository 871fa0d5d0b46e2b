import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SILENT } from '../../core/logger.ts'
import { Outage, withoutIntroduction } from './outage.ts'

const A = 'a'.repeat(56)
const B = 'b'.repeat(56)
const circuit = (address: string, state: string): string =>
  `7 BUILT $AB~x,$CD~y BUILD_FLAGS=IS_INTERNAL PURPOSE=HS_SERVICE_INTRO HS_STATE=${state} REND_QUERY=${address} TIME_CREATED=2026-12-01T09:26:58`

test('an onion without one established introduction circuit cannot be reached', () => {
  const circuits = [circuit(A, 'HSSI_ESTABLISHED'), circuit(B, 'HSSI_CONNECTING'), ''].join('\n')
  assert.deepEqual(withoutIntroduction(circuits, `${A}\n${B}\n`), [B])
  assert.deepEqual(withoutIntroduction('', `${A}\n${B}`), [A, B])
  assert.deepEqual(withoutIntroduction(circuits, ''), [])
})

test('only those are taken from tor, once', async () => {
  const deleted: string[] = []
  const forgotten = Promise.withResolvers<void>()
  const outage = new Outage({
    log: SILENT,
    graceMs: 1,
    control: () => ({
      getInfo: async () => ({
        'circuit-status': circuit(A, 'HSSI_ESTABLISHED'),
        'onions/detached': `${A}\n${B}`,
      }),
      delOnion: async (address) => void deleted.push(address),
    }),
    onForgotten: forgotten.resolve,
  })
  outage.over()
  outage.over()
  await forgotten.promise
  outage.close()
  assert.deepEqual(deleted, [B])
})
