import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { TOR_KINDS } from '../tor/api/kinds.ts'
import { valueAt } from './json-path.ts'

const object = {
  metadata: { name: 'web', labels: { 'app.kubernetes.io/name': 'tor' } },
  status: {
    targets: [{ endpoint: 'first' }, { endpoint: 'last' }],
    conditions: [
      { type: 'Published', reason: 'DescriptorUploaded' },
      { type: 'Ready', reason: 'Ready', status: 'True' },
    ],
  },
}

test('the paths of printer columns lead to values', () => {
  const cases: [string, unknown][] = [
    ['.metadata.name', 'web'],
    ['{.metadata.name}', 'web'],
    ['.metadata.labels.app\\.kubernetes\\.io/name', 'tor'],
    [".metadata.labels['app.kubernetes.io/name']", 'tor'],
    ['.status.targets[0].endpoint', 'first'],
    ['.status.targets[-1].endpoint', 'last'],
    ['.status.targets[7].endpoint', undefined],
    ['.status.conditions[?(@.type=="Ready")].status', 'True'],
    ['.status.conditions[?(@.type=="Absent")].status', undefined],
    ['.status.nothing.at.all', undefined],
    ['.metadata.name.length', undefined],
    ['.metadata.constructor', undefined],
  ]
  for (const [path, value] of cases) assert.deepEqual(valueAt(object, path), value, path)
})

test('every column of our kinds has a path that is understood', () => {
  for (const kind of TOR_KINDS) for (const column of kind.columns) valueAt({}, column.jsonPath)
})

test('any other text is an error with a code, never another exception', () => {
  fc.assert(
    fc.property(fc.string(), (path) => {
      try {
        valueAt(object, path)
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'JsonPathInvalid')
      }
    }),
  )
})
