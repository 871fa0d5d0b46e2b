import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCircuits } from '../control/circuits.ts'
import { UploadCircuits, uploadCircuits } from './upload-circuits.ts'

const STATUS = [
  '7 BUILT $A~a,$B~b PURPOSE=HS_SERVICE_INTRO HS_STATE=HSSI_ESTABLISHED REND_QUERY=x TIME_CREATED=t',
  '8 BUILT $A~a,$B~b BUILD_FLAGS=IS_INTERNAL PURPOSE=HS_SERVICE_HSDIR REND_QUERY=x TIME_CREATED=t',
  '9 EXTENDED $A~a PURPOSE=HS_SERVICE_HSDIR REND_QUERY=x TIME_CREATED=t',
  '10 BUILT $A~a PURPOSE=HS_SERVICE_REND REND_QUERY=x TIME_CREATED=t',
].join('\n')

test('only built upload circuits are meant', () => {
  assert.deepEqual(uploadCircuits(readCircuits(STATUS)), ['8'])
  assert.deepEqual(uploadCircuits(readCircuits('')), [])
  assert.deepEqual(uploadCircuits(readCircuits('nonsense\n12')), [])
})

test('one is closed once it was seen for a second, and only if it has no stream', async () => {
  let now = 0
  const said: string[] = []
  const control = {
    getInfo: async () => ({ 'circuit-status': STATUS }),
    closeCircuit: async (id: string, options: object) => {
      said.push(`${id} ${JSON.stringify(options)}`)
      throw new Error('552 it is gone')
    },
  }
  const circuits = new UploadCircuits(
    () => control as never,
    () => now,
  )
  await circuits.sweep()
  now = 999
  await circuits.sweep()
  assert.deepEqual(said, [])
  now = 1000
  await circuits.sweep()
  assert.deepEqual(said, ['8 {"ifUnused":true}'])
  circuits.close()
})
