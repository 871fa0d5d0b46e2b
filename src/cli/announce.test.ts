import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource } from '../core/resource.ts'
import { addressOf, lineFor } from './announce.ts'
import { plain } from './style.ts'

function onion(status: string, reason: string, message: string): Resource {
  return {
    ...{
      apiVersion: 'tor.fr0st.dev/v1alpha1',
      kind: 'OnionService',
      metadata: { name: 'web', namespace: 'default' },
    },
    spec: { ports: [{ virtualPort: 80 }, { virtualPort: 22 }] },
    status: { hostname: 'abcd.onion', conditions: [{ type: 'Ready', status, reason, message }] },
  }
}

test('an object that becomes ready is announced with its addresses, once', () => {
  const waiting = onion('False', 'UploadPending', 'the descriptor is on its way')
  const ready = onion('True', 'Ready', 'it is')
  assert.equal(
    lineFor(waiting, ready, plain),
    '✓ OnionService default/web is ready: http://abcd.onion/  abcd.onion:22',
  )
  assert.equal(lineFor(ready, ready, plain), undefined)
  assert.equal(lineFor(ready, waiting, plain), '✗ OnionService default/web: the descriptor is on its way')
  assert.equal(lineFor(undefined, { ...waiting, status: {} }, plain), undefined)
})

test('the well-known ports are shown as links', () => {
  assert.equal(addressOf('a.onion', 443), 'https://a.onion/')
  assert.equal(addressOf('a.onion', 6697), 'a.onion:6697')
})
