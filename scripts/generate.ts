import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import type { ApiKind } from '../src/cluster/api-kind.ts'
import { TOR_KINDS } from '../src/tor/api/kinds.ts'
import { DaemonCondition, OnionCondition, ProxyCondition, Reason } from '../src/tor/api/reasons.ts'

/** Writes what follows from the kinds: JSON schemas for editors, and the reference. `--check` only compares. */

interface Schema {
  type?: string
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  enum?: unknown[]
  anyOf?: Schema[]
  additionalProperties?: Schema | boolean
  not?: object
}

function specOf(kind: ApiKind): Schema {
  return z.toJSONSchema(kind.spec, { io: 'input', unrepresentable: 'any' }) as Schema
}

function documentSchema(kind: ApiKind): object {
  const { $schema: _, ...spec } = specOf(kind) as Schema & { $schema?: string }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: kind.kind,
    type: 'object',
    required: ['apiVersion', 'kind', 'metadata'],
    properties: {
      apiVersion: { const: kind.apiVersion },
      kind: { const: kind.kind },
      metadata: { type: 'object', required: ['name'] },
      spec,
      status: { type: 'object' },
    },
  }
}

function rows(schema: Schema, path: string): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    // A field that can never be set is there for its error message only.
    if (field.not !== undefined) return []
    const here = `${path}.${name}`
    const inner = field.type === 'array' ? field.items : field
    const inside = field.type === 'array' ? `${here}[]` : here
    const required = schema.required?.includes(name) === true ? 'yes' : ''
    return [
      `| \`${here}\` | ${typeName(field)} | ${required} | ${field.description ?? ''} |`,
      ...rows(inner ?? {}, inside),
    ]
  })
}

function typeName(field: Schema): string {
  if (field.enum !== undefined) return field.enum.map((value) => `\`${String(value)}\``).join(', ')
  if (field.anyOf !== undefined) return field.anyOf.map(typeName).join(' or ')
  if (field.type === 'array') return `list of ${typeName(field.items ?? {})}`
  if (field.type === 'object' && typeof field.additionalProperties === 'object') return 'map of strings'
  return field.type ?? 'any'
}

function reference(): string {
  const out = [
    '# Reference of the kinds',
    '',
    'Made by `npm run generate` from the schemas that decide what is accepted.',
  ]
  for (const kind of TOR_KINDS) {
    out.push('', `## ${kind.kind}`, '')
    out.push(
      `\`${kind.apiVersion}\`; short name \`${kind.shortNames?.[0]}\`; \`postern get ${kind.plural}\`.`,
    )
    out.push('', '| field | type | required | |', '| --- | --- | --- | --- |')
    out.push(...rows(specOf(kind), 'spec'))
  }
  out.push('', '## Conditions', '')
  const conditions = { OnionService: OnionCondition, OnionProxy: ProxyCondition, TorDaemon: DaemonCondition }
  for (const [kind, types] of Object.entries(conditions)) {
    out.push(
      `- ${kind}: ${Object.values(types)
        .map((type) => `\`${type}\``)
        .join(', ')}`,
    )
  }
  out.push('', "Reasons that the operator sets itself (an agent's reasons come through as they are):", '')
  out.push(
    Object.values(Reason)
      .map((reason) => `\`${reason}\``)
      .join(', '),
  )
  return `${out.join('\n')}\n`
}

const files = new Map<string, string>([['docs/reference.md', reference()]])
for (const kind of TOR_KINDS) {
  files.set(
    `docs/schemas/${kind.kind.toLowerCase()}.json`,
    `${JSON.stringify(documentSchema(kind), null, 2)}\n`,
  )
}

const root = join(import.meta.dirname, '..')
const check = process.argv.includes('--check')
for (const [name, text] of files) {
  const path = join(root, name)
  if (!check) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    continue
  }
  let committed = ''
  try {
    committed = readFileSync(path, 'utf8')
  } catch {}
  if (committed !== text) {
    console.log(`${name} is not what the kinds give: run 'npm run generate'`)
    process.exitCode = 1
  }
}
