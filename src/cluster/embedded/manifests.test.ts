import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Kind } from '../../core/resource.ts'
import { CONFIG_MAP, NAMESPACE, SECRET } from '../kinds.ts'
import { type ManifestKind, readManifest } from './manifests.ts'

const ONION: Kind = {
  apiVersion: 'tor.fr0st.dev/v1alpha1',
  kind: 'OnionService',
  plural: 'onionservices',
  namespaced: true,
}

const onion: ManifestKind = {
  kind: ONION,
  validate(document) {
    const ports = (document as { spec?: { ports?: { virtualPort?: unknown }[] } }).spec?.ports
    if (!Array.isArray(ports)) return [{ path: ['spec', 'ports'], message: 'must be a list' }]
    return ports.flatMap(({ virtualPort }, index) =>
      typeof virtualPort === 'number'
        ? []
        : [{ path: ['spec', 'ports', index, 'virtualPort'], message: 'must be a number' }],
    )
  },
}
const plain = (kind: Kind): ManifestKind => ({ kind, validate: () => [] })
const KINDS = [onion, plain(SECRET), plain(CONFIG_MAP), plain(NAMESPACE)]

const read = (text: string) => readManifest(text, 'web.yaml', KINDS)
const texts = (text: string) => read(text).problems.map((problem) => problem.text)

const HEAD = 'apiVersion: tor.fr0st.dev/v1alpha1\nkind: OnionService\n'

test('several documents, comments, empty ones, a List, JSON: all become objects', () => {
  const text = `# a comment
---
${HEAD}metadata: {name: web}
spec: {ports: [{virtualPort: 80}]}
---
# nothing here
---
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: one, namespace: other}
  - apiVersion: v1
    kind: List
    items: [{apiVersion: v1, kind: Namespace, metadata: {name: two}}]
---
null
`
  const manifest = read(text)
  assert.deepEqual(manifest.problems, [])
  assert.deepEqual(
    manifest.documents.map(({ ref, position }) => [ref.kind, ref.namespace, ref.name, position.line]),
    [
      ['OnionService', 'default', 'web', 3],
      ['ConfigMap', 'other', 'one', 13],
      ['Namespace', undefined, 'two', 18],
    ],
  )
  assert.deepEqual(manifest.documents[0]?.object, {
    apiVersion: ONION.apiVersion,
    kind: 'OnionService',
    metadata: { name: 'web', namespace: 'default' },
    spec: { ports: [{ virtualPort: 80 }] },
  })
  const json =
    '{\n\t"apiVersion": "v1",\n\t"kind": "ConfigMap",\n\t"metadata": {"name": "x"},\n\t"data": {"a": "b"}\n}\n'
  assert.deepEqual(read(json).documents[0]?.object?.data, { a: 'b' })
  assert.deepEqual(read('\ufeffapiVersion: v1\r\nkind: ConfigMap\r\nmetadata:\r\n  name: x\r\n').problems, [])
})

test('numbers are read as Kubernetes reads them', () => {
  const object = read(
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nspec: {mode: 0400, time: 12:30, day: 2026-01-01, zero: 0, ten: 10}\n',
  ).documents[0]?.object
  assert.deepEqual(object?.spec, { mode: 256, time: '12:30', day: '2026-01-01', zero: 0, ten: 10 })
})

test('anchors and merge keys work, bombs do not', () => {
  const merged = read(`${HEAD}metadata: {name: web}
base: &base {virtualPort: 80}
spec:
  ports:
    - <<: *base
      extra: 1
`)
  assert.deepEqual(merged.problems, [])
  assert.deepEqual(merged.documents[0]?.object?.spec, { ports: [{ virtualPort: 80, extra: 1 }] })
  let bomb = 'a0: &a0 [x, x, x, x, x, x, x, x, x]\n'
  for (let level = 1; level < 9; level++) {
    bomb += `a${level}: &a${level} [${Array.from({ length: 9 }, () => `*a${level - 1}`).join(', ')}]\n`
  }
  assert.deepEqual(texts(bomb), [
    'web.yaml:1: has more than 100 aliases, or one of an unknown anchor: write the values out; nothing in this file is changed until it can be read',
  ])
  assert.equal(read(bomb).complete, false)
  assert.match(texts(`a: ${'['.repeat(20_000)}`)[0] ?? '', /^web\.yaml:?/)
})

test('a validator’s problem is told with its line', () => {
  const text = `${HEAD}metadata:
  name: web
spec:
  ports:
    - virtualPort: eighty
      backend: {}
    - backend: {}
`
  assert.deepEqual(texts(text), [
    'web.yaml:7: OnionService default/web: spec.ports[0].virtualPort: must be a number',
    // What is not there is told where it should be.
    'web.yaml:9: OnionService default/web: spec.ports[1].virtualPort: must be a number',
  ])
  const [first] = read(text).problems
  assert.deepEqual(
    { ...first },
    {
      file: 'web.yaml',
      line: 7,
      column: 7,
      object: 'OnionService default/web',
      message: 'spec.ports[0].virtualPort: must be a number',
      text: 'web.yaml:7: OnionService default/web: spec.ports[0].virtualPort: must be a number',
    },
  )
  assert.equal(read(text).documents[0]?.object, undefined)
  assert.equal(read(text).complete, true)
})

test('what is not an object of a known kind is told with what was meant', () => {
  const cases: [string, string][] = [
    [
      'apiVersion: tor.fr0st.dev/v1alpha1\nkind: OnionServce\nmetadata: {name: web}\n',
      'web.yaml:2: kind: there is no kind OnionServce in tor.fr0st.dev/v1alpha1: did you mean kind: OnionService of apiVersion: tor.fr0st.dev/v1alpha1?',
    ],
    [
      'apiVersion: tor.fr0st.dev/v1\nkind: OnionService\nmetadata: {name: web}\n',
      'web.yaml:1: apiVersion: tor.fr0st.dev/v1 has no kind OnionService: did you mean tor.fr0st.dev/v1alpha1?',
    ],
    [
      'apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: web}\n',
      'web.yaml:2: kind: there is no kind CronJob in batch/v1: known are ConfigMap, Namespace, OnionService, Secret',
    ],
    ['- a\n- b\n', 'web.yaml:1: must be an object with apiVersion, kind and metadata'],
    [
      'kind: Secret\n',
      'web.yaml:1: apiVersion: is missing: every document needs apiVersion, kind and metadata.name',
    ],
    ['apiVersion: v1\nkind: [Secret]\n', 'web.yaml:2: kind: must be a string'],
    [
      'apiVersion: v1\nkind: Secret\n',
      'web.yaml:1: metadata: is missing: every document needs apiVersion, kind and metadata.name',
    ],
    [
      'apiVersion: v1\nkind: Secret\nmetadata: {}\n',
      'web.yaml:3: metadata.name: is missing: give the object a name',
    ],
    [
      'apiVersion: v1\nkind: Secret\nmetadata:\n  name: 12\n',
      'web.yaml:4: metadata.name: must be a string: put it in quotes',
    ],
    [
      'apiVersion: v1\nkind: Secret\nmetadata:\n  name: My_Key\n',
      'web.yaml:4: metadata.name: "My_Key" is no valid name: use at most 253 lower case letters, digits, "-" and ".", with a letter or digit at both ends',
    ],
    [
      'apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  namespace: a.b\n',
      'web.yaml:5: metadata.namespace: "a.b" is no valid namespace: use at most 63 lower case letters, digits and "-", with a letter or digit at both ends',
    ],
  ]
  for (const [text, problem] of cases) {
    assert.deepEqual(texts(text), [problem])
    // Nobody knows which object this is: so nothing that came from the file may go.
    assert.equal(read(text).complete, false)
  }
})

test('metadata is checked for every kind', () => {
  assert.deepEqual(
    texts(`apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels:
    version: 1
  annotations: none
`),
    [
      'web.yaml:6: ConfigMap default/a: metadata.labels.version: must be a string: put it in quotes',
      'web.yaml:7: ConfigMap default/a: metadata.annotations: must be an object of texts',
    ],
  )
  assert.deepEqual(texts('apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: b}\n'), [
    'web.yaml:3: Namespace a: metadata.namespace: a Namespace is in no namespace: remove it',
  ])
})

test('a Secret’s stringData becomes data', () => {
  const head = 'apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n'
  const object = read(`${head}data: {a: eA==, b: eA==}\nstringData: {b: é, c: ''}\n`).documents[0]?.object
  assert.deepEqual(object?.data, { a: 'eA==', b: 'w6k=', c: '' })
  assert.equal(object?.stringData, undefined)
  assert.deepEqual(texts(`${head}stringData:\n  pin: 1234\n`), [
    'web.yaml:5: Secret default/a: stringData.pin: must be a string: put it in quotes',
  ])
})

test('what is no YAML is told by line, without its text', () => {
  const end = '; nothing in this file is changed until it can be read'
  const cases: [string, string][] = [
    ['a: 1\nb: "s3cret\n', 'web.yaml:3: lacks a character here: a closing quote, bracket, brace or comma'],
    [
      'a: 1\n b: s3cret\n',
      'web.yaml:1: has a field inside a value: put the value in quotes, or on a line of its own',
    ],
    ['a:\n  b: 1\n c: 2\n', 'web.yaml:3: is indented wrongly: line it up with the fields it belongs to'],
    ['a: 1\na: s3cret\n', 'web.yaml:2: has this field twice in one object: remove one'],
    [
      'a: s3cret: more\n',
      'web.yaml:1: has a field inside a value: put the value in quotes, or on a line of its own',
    ],
    ['a:\n\tb: 1\n', 'web.yaml:2: is indented with a tab: use spaces'],
    [
      'a: *nobody\n',
      'web.yaml:1: has more than 100 aliases, or one of an unknown anchor: write the values out',
    ],
    ['a: @s3cret\n', 'web.yaml:1: has a value that starts with a reserved character: put it in quotes'],
  ]
  for (const [text, problem] of cases) {
    const manifest = read(`${text}`)
    assert.deepEqual(
      manifest.problems.map((item) => item.text),
      [problem + end],
    )
    assert.equal(manifest.complete, false)
    assert.deepEqual(manifest.documents, [])
  }
})

test('too many documents are refused', () => {
  const text = Array.from(
    { length: 5002 },
    (_, index) => `apiVersion: v1\nkind: Secret\nmetadata: {name: a${index}}\n`,
  )
  assert.match(read(text.join('---\n')).problems[0]?.text ?? '', /has more than 5000 documents: split it/)
})

test('no text makes the reader throw, and every problem has a place', () => {
  const snippets = fc.constantFrom(
    'a: ',
    '- ',
    '---\n',
    '\n',
    '  ',
    '{',
    '}',
    '[',
    ']',
    '&a ',
    '*a',
    '"',
    "'",
    '|',
    '>',
    '!x ',
    '<<: ',
    '? ',
    'kind: List\nitems: ',
    '\t',
    '#',
    '0400',
    HEAD,
  )
  fc.assert(
    fc.property(fc.array(fc.oneof(snippets, fc.string({ maxLength: 5 })), { maxLength: 30 }), (parts) => {
      const manifest = read(parts.join(''))
      for (const problem of manifest.problems) {
        assert.ok(problem.text.startsWith('web.yaml'))
        assert.ok(!problem.text.includes('\n') || parts.join('').includes('\n'))
      }
    }),
    { numRuns: 500 },
  )
})
