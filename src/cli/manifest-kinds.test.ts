import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MANIFEST_KINDS } from './manifest-kinds.ts'

test('a value of the wrong type is not called missing', () => {
  const service = MANIFEST_KINDS.find(({ kind }) => kind.kind === 'Service')!
  const document = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' } }
  assert.deepEqual(service.validate({ ...document, spec: { ports: [{ port: '80' }, {}] } }), [
    { path: ['spec', 'ports', 0, 'port'], message: 'must be a whole number from 1 to 65535' },
    { path: ['spec', 'ports', 1, 'port'], message: 'is required' },
  ])
})
