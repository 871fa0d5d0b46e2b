import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource } from '../core/resource.ts'
import { describeObject, wrap } from './describe.ts'
import type { EventLike } from './events.ts'
import { document, hideSecret } from './output.ts'

const now = Date.parse('2026-01-01T00:05:00Z')
const before = '2026-01-01T00:00:00Z'

const onion: Resource = {
  apiVersion: 'tor.fr0st.dev/v1alpha1',
  kind: 'OnionService',
  metadata: { name: 'web', namespace: 'default', uid: 'one', creationTimestamp: before, labels: { a: 'b' } },
  spec: { ports: [{ virtualPort: 80, backend: { service: 'web', port: 80 } }] },
  status: {
    hostname: 'abcd.onion',
    conditions: [
      {
        ...{ type: 'Ready', status: 'False', reason: 'ServiceNotFound', lastTransitionTime: before },
        message: 'Service web does not exist; create it, or correct spec.ports[0].backend.service',
      },
    ],
  },
}

function event(reason: string, uid: string, more: object = {}): EventLike {
  return {
    ...{ apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { name: reason }, type: 'Warning', reason },
    ...{ note: `about ${reason}`, eventTime: '2026-01-01T00:04:00.000000Z' },
    regarding: { kind: 'OnionService', namespace: 'default', name: 'web', uid },
    ...more,
  }
}

test('an object is described with what it asks for, how it stands, what to do next, and its events', () => {
  const series = { series: { count: 3, lastObservedTime: '2026-01-01T00:04:30.000000Z' } }
  const text = describeObject(
    onion,
    [event('Again', 'one', series), event('Once', 'one'), event('Old', 'zero')],
    {
      now,
      width: 60,
    },
  )
  assert.match(
    text,
    /^Name: +web\nNamespace: +default\nKind: +OnionService \(tor\.fr0st\.dev\/v1alpha1\)\nLabels: +a=b\nAge: +5m$/m,
  )
  assert.match(text, /^Spec\n {2}ports:\n {4}- virtualPort: 80$/m)
  assert.match(text, /^Status\n {2}hostname: abcd\.onion$/m)
  assert.match(
    text,
    /✗ Ready +False +ServiceNotFound {2}5m\n {6}Service web does not exist; create it, or correct\n {6}spec/,
  )
  assert.match(text, /Warning +Once +60s +about Once\n +Warning +Again +30s \(x3\) +about Again$/)
  assert.doesNotMatch(text, /Old/)
})

test('a Secret is described, and printed, without what it holds', () => {
  const secret: Resource = {
    ...{
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'Opaque',
      data: { key: Buffer.from('hush').toString('base64') },
    },
    metadata: {
      name: 'key',
      namespace: 'default',
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"key":"aHVzaA=="}}' },
    },
  }
  const described = describeObject(secret, [], { now })
  assert.match(described, /key: 4 bytes/)
  assert.doesNotMatch(described, /aHVzaA/)
  const printed = document([hideSecret(secret)], true, 'yaml')
  assert.match(printed, /data: <hidden>/)
  assert.doesNotMatch(printed, /aHVzaA/)
})

test('several objects become a List that reads back', () => {
  assert.deepEqual(JSON.parse(document([onion], false, 'json')), {
    apiVersion: 'v1',
    kind: 'List',
    items: [onion],
  })
  assert.deepEqual(JSON.parse(document([onion], true, 'json')), onion)
})

test('text is broken between words, and a long word stays whole', () => {
  assert.deepEqual(wrap('one two three', 7), ['one two', 'three'])
  assert.deepEqual(wrap('a abcdefghij b', 4), ['a', 'abcdefghij', 'b'])
})
