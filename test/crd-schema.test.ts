import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { customResourceDefinition } from '../scripts/generate/crd.ts'
import { type Schema, structuralSchema } from '../scripts/generate/structural.ts'
import { CEL_RULES, type CelRule, refusedField } from '../src/cluster/cel.ts'
import { TOR_KINDS } from '../src/tor/api/kinds.ts'

/** What an API server asks of the schema of a kind, so far as it can be seen without one. */

/** Members that no structural schema may have. */
const FORBIDDEN = [
  '$ref',
  '$schema',
  'definitions',
  'dependencies',
  'deprecated',
  'discriminator',
  'id',
  'not',
  'oneOf',
  'patternProperties',
  'propertyNames',
  'readOnly',
  'uniqueItems',
  'writeOnly',
  'xml',
]

/** Visits every node of a schema. */
function* nodes(schema: Schema, path: string): Generator<[string, Schema]> {
  yield [path, schema]
  for (const [name, field] of Object.entries(schema.properties ?? {})) yield* nodes(field, `${path}.${name}`)
  if (schema.items !== undefined) yield* nodes(schema.items, `${path}[]`)
  if (typeof schema.additionalProperties === 'object') yield* nodes(schema.additionalProperties, `${path}{}`)
}

for (const kind of TOR_KINDS) {
  test(`${kind.kind}: its schema is structural, and every value is bounded`, () => {
    const { spec } = customResourceDefinition(kind) as {
      spec: { versions: [{ schema: { openAPIV3Schema: Schema } }] }
    }
    const root = spec.versions[0].schema.openAPIV3Schema
    const faults: string[] = []
    for (const [path, node] of nodes(root, kind.kind)) {
      for (const member of FORBIDDEN) if (member in node) faults.push(`${path} has ${member}`)
      if (node.additionalProperties === false) faults.push(`${path} is closed`)
      if (node.additionalProperties !== undefined && node.properties !== undefined)
        faults.push(`${path} has both kinds of members`)
      if (node.type === undefined && node['x-kubernetes-int-or-string'] !== true)
        faults.push(`${path} has no type`)
      if (path === `${kind.kind}.apiVersion` || path === `${kind.kind}.kind`) continue
      if (path.startsWith(`${kind.kind}.metadata`)) continue
      const text = node.type === 'string' && node.enum === undefined && node.format === undefined
      if (text && node.maxLength === undefined) faults.push(`${path} has no maxLength`)
      if (node.type === 'array' && node.maxItems === undefined) faults.push(`${path} has no maxItems`)
      if (typeof node.additionalProperties === 'object' && node.maxProperties === undefined)
        faults.push(`${path} has no maxProperties`)
      for (const rule of (node[CEL_RULES] ?? []) as CelRule[]) {
        if ((rule.message === undefined) === (rule.messageExpression === undefined))
          faults.push(`${path}: needs one message: ${rule.rule}`)
        if ((rule.message ?? '').length > 2048) faults.push(`${path}: too long a message`)
      }
    }
    assert.deepEqual(faults, [])
  })
}

const REFUSED: [string, z.ZodType, RegExp][] = [
  ['a text without a limit', z.strictObject({ a: z.string() }), /spec\.a: a text needs maxLength/],
  ['a list without a limit', z.strictObject({ a: z.array(z.int()) }), /spec\.a: a list needs maxItems/],
  ['a map without a limit', z.record(z.string(), z.int()), /spec: a map needs maxProperties/],
  ['a union of objects', z.union([z.strictObject({}), z.string().max(1)]), /spec: only a union/],
  ['what may be null', z.strictObject({ a: z.int().nullable() }), /spec\.a: .*nullable/],
]
for (const [name, schema, expected] of REFUSED) {
  test(`a schema with ${name} is not made`, () => {
    assert.throws(() => structuralSchema(schema, 'spec'), expected)
  })
}

test('a pattern with words of its own becomes a rule with these words', () => {
  const schema = z
    .string()
    .max(9)
    .regex(/^[a-z']+$/, 'must be small')
  assert.deepEqual(structuralSchema(schema.optional().describe('A word.'), 'spec'), {
    description: 'A word.',
    type: 'string',
    maxLength: 9,
    [CEL_RULES]: [{ rule: "self.matches('^[a-z\\']+$')", message: 'must be small' }],
  })
  assert.equal(structuralSchema(z.string().max(9).regex(/^a$/), 'spec').pattern, '^a$')
})

test('a field that may not be set stays in the schema, where it is refused', () => {
  const schema = z.strictObject({ a: refusedField('not here', 'object') })
  const { a } = structuralSchema(schema, 'spec').properties!
  assert.deepEqual(a![CEL_RULES], [{ rule: 'false', message: 'not here' }])
  assert.equal(a!['x-kubernetes-preserve-unknown-fields'], true)
  assert.equal(schema.safeParse({ a: {} }).error?.issues[0]?.message, 'not here')
})
