import { z } from 'zod'
import type { ApiKind } from '../../src/cluster/api-kind.ts'
import type { Schema } from './structural.ts'

/** JSON schemas for editors. */

/** The spec of a kind as a JSON schema, without what only an API server understands. */
export function specSchema(kind: ApiKind): Schema {
  const { $schema: _, ...schema } = plain(
    z.toJSONSchema(kind.spec, { io: 'input', unrepresentable: 'any' }) as Schema,
  )
  return schema
}

export function documentSchema(kind: ApiKind): object {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: kind.kind,
    description: kind.description,
    type: 'object',
    required: ['apiVersion', 'kind', 'metadata', ...(kind.specOptional === true ? [] : ['spec'])],
    properties: {
      apiVersion: { const: kind.apiVersion },
      kind: { const: kind.kind },
      metadata: { type: 'object', required: ['name'] },
      spec: specSchema(kind),
      status: { type: 'object' },
    },
  }
}

function plain<T>(value: T): T {
  if (Array.isArray(value)) return value.map(plain) as T
  if (typeof value !== 'object' || value === null) return value
  const schema = value as Schema
  // A field that can never be set says so, and nothing else.
  if (schema.not !== undefined) return { not: {} } as T
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([member]) => !member.startsWith('x-kubernetes-'))
      .map(([member, inner]) => [member, plain(inner)]),
  ) as T
}
