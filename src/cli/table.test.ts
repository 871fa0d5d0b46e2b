import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EVENT, POD, SECRET, SERVICE } from '../cluster/kinds.ts'
import type { Resource } from '../core/resource.ts'
import { ONION_SERVICE } from '../tor/api/onion-service.ts'
import { byName, objectTable, textTable } from './table.ts'

const now = Date.parse('2026-01-01T00:02:00Z')
const created = '2026-01-01T00:00:00Z'

function onion(name: string, status: object, namespace = 'default'): Resource {
  return {
    ...{ apiVersion: ONION_SERVICE.apiVersion, kind: ONION_SERVICE.kind, spec: { ports: [] }, status },
    metadata: { name, namespace, creationTimestamp: created },
  }
}

test('onions are printed as the CRD would print them', () => {
  const objects = [onion('my-service', { hostname: 'abcd.onion', ready: true }), onion('b', {})]
  assert.equal(
    objectTable(ONION_SERVICE, objects, { now }),
    [
      'NAME         HOSTNAME     READY    AGE',
      'my-service   abcd.onion   true     2m',
      'b            <none>       <none>   2m',
    ].join('\n'),
  )
})

test('wide adds columns, all namespaces add one in front', () => {
  const ready = { conditions: [{ type: 'Ready', status: 'False', reason: 'NoReadyEndpoints' }], ready: false }
  assert.equal(
    objectTable(ONION_SERVICE, [onion('a', ready, 'shop')], { now, wide: true, withNamespace: true }),
    [
      'NAMESPACE   NAME   HOSTNAME   READY   REASON             AGE',
      'shop        a      <none>     false   NoReadyEndpoints   2m',
    ].join('\n'),
  )
})

test('kinds of Kubernetes have the columns that kubectl shows', () => {
  const metadata = { name: 'x', namespace: 'default', creationTimestamp: created }
  const row = (table: string): string[] => table.split('\n')[1]!.split(/\s{3,}/)
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: { ports: [{ port: 80 }, { port: 53, protocol: 'UDP' }] },
  }
  assert.deepEqual(row(objectTable(SERVICE, [service], { now })), [
    'x',
    'ClusterIP',
    '<none>',
    '80/TCP,53/UDP',
    '2m',
  ])
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata, data: { a: 'YQ==', b: 'Yg==' } }
  assert.deepEqual(row(objectTable(SECRET, [secret], { now })), ['x', 'Opaque', '2', '2m'])
  const pod = {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata },
    status: {
      phase: 'Running',
      containerStatuses: [
        { name: 'c', ready: false, restartCount: 3, state: { waiting: { reason: 'CrashLoopBackOff' } } },
      ],
    },
  }
  assert.deepEqual(row(objectTable(POD, [pod], { now })), ['x', '0/1', 'CrashLoopBackOff', '3', '2m'])
  const event = {
    ...{
      apiVersion: EVENT.apiVersion,
      kind: 'Event',
      metadata,
      type: 'Normal',
      reason: 'KeyLoaded',
      note: 'it\nfits',
    },
    regarding: { kind: 'OnionService', name: 'web' },
  }
  assert.deepEqual(row(objectTable(EVENT, [event], { now })), [
    '2m',
    'Normal',
    'KeyLoaded',
    'onionservice/web',
    'it fits',
  ])
})

test('what an object holds cannot move the cursor or break a line', () => {
  assert.equal(textTable(['A', 'B'], [['\u001b[31mred\u001b[0m', 'x\r\ny']]), 'A     B\nred   x y')
})

test('lists are ordered by namespace and name', () => {
  const objects = [onion('b', {}, 'b'), onion('c', {}, 'a'), onion('a', {}, 'b')]
  assert.deepEqual(
    objects.sort(byName).map(({ metadata }) => metadata.name),
    ['c', 'a', 'b'],
  )
})
