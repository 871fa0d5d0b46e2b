import { z } from 'zod'
import { CEL_RULES, type CelRule, celString } from '../../src/cluster/cel.ts'

/** Part of a JSON schema, and of a structural schema of a CustomResourceDefinition. */
export interface Schema {
  [member: string]: unknown
  type?: string
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  enum?: unknown[]
  anyOf?: Schema[]
  additionalProperties?: Schema | boolean
  not?: object
  default?: unknown
}

/** Member under which the rules that follow from a schema's own checks travel from zod to here. */
const CHECK_RULES = 'x-check-rules'
/** What of a JSON schema an API server takes as it is. */
const KEPT = [
  'description',
  'type',
  'format',
  'enum',
  'default',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
  'maxProperties',
  'required',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-preserve-unknown-fields',
]
const DROPPED = ['additionalProperties', 'anyOf', 'items', 'not', 'properties', CEL_RULES, CHECK_RULES]

/**
 * The structural schema of a zod schema: closed objects become pruned ones, a pattern with a message of its own becomes
 * a CEL rule with that message, a union of number and text an int-or-string.
 *
 * @throws Error where an API server would refuse the schema, or the cost of its rules
 */
export function structuralSchema(schema: z.ZodType, path: string): Schema {
  const json = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const rules = patternRules(zodSchema)
      if (rules.length > 0) (jsonSchema as Schema)[CHECK_RULES] = rules
    },
  })
  return structural(json as Schema, path)
}

/** CEL rules of the patterns that have a message of their own. */
function patternRules(schema: z.core.$ZodType): CelRule[] {
  return (schema._zod.def.checks ?? []).flatMap(({ _zod }) => {
    const { check, pattern, error } = _zod.def as z.core.$ZodCheckDef & { pattern?: RegExp }
    if (check !== 'string_format' || pattern === undefined || error === undefined) return []
    const message = error({ input: undefined } as never)
    if (typeof message !== 'string') return []
    return [{ rule: `self.matches(${celString(pattern.source)})`, message }]
  })
}

/** What a schema asks of a name, as rules on the object that has it. */
export function nameRules(schema: z.ZodType): CelRule[] {
  const { maxLength } = structuralSchema(schema, 'metadata.name')
  const longest = (schema._zod.def.checks ?? []).find(({ _zod }) => _zod.def.check === 'max_length')
  const message = longest?._zod.def.error?.({ input: undefined } as never)
  return [
    { rule: `self.size() <= ${maxLength}`, ...(typeof message === 'string' ? { message } : {}) },
    ...patternRules(schema),
  ].map((rule) => ({
    ...rule,
    rule: rule.rule.replace(/^self/, 'self.metadata.name'),
    fieldPath: '.metadata.name',
  }))
}

function structural(json: Schema, path: string): Schema {
  const unknown = Object.keys(json).filter((member) => !KEPT.includes(member) && !DROPPED.includes(member))
  if (unknown.length > 0) throw new Error(`${path}: an API server does not take ${unknown.join(', ')}`)
  if (json.anyOf !== undefined) return intOrString(json, path)
  const out: Schema = {}
  for (const member of KEPT) if (json[member] !== undefined) out[member] = json[member]
  const rules = [...((json[CHECK_RULES] ?? []) as CelRule[]), ...((json[CEL_RULES] ?? []) as CelRule[])]
  if (json[CHECK_RULES] !== undefined) delete out.pattern
  if (rules.length > 0) out[CEL_RULES] = rules
  if (json.type === 'integer') boundInteger(out)
  if (json.type === 'string') boundString(out, path)
  if (json.type === 'array') {
    if (json.maxItems === undefined) throw new Error(`${path}: a list needs maxItems`)
    out.items = structural(json.items ?? {}, `${path}[]`)
  }
  if (json.type === 'object') objectMembers(json, out, path)
  if (out.type === undefined) throw new Error(`${path}: has no type`)
  return out
}

function objectMembers(json: Schema, out: Schema, path: string): void {
  const { properties, additionalProperties } = json
  if (properties !== undefined && Object.keys(properties).length > 0) {
    out.properties = Object.fromEntries(
      Object.entries(properties).map(([name, field]) => [name, structural(field, `${path}.${name}`)]),
    )
    return
  }
  if (typeof additionalProperties !== 'object') return
  if (Object.keys(additionalProperties).length === 0) {
    out['x-kubernetes-preserve-unknown-fields'] = true
    return
  }
  if (json.maxProperties === undefined) throw new Error(`${path}: a map needs maxProperties`)
  out.additionalProperties = structural(additionalProperties, `${path}[]`)
}

/** zod's bounds of whole numbers are those of JavaScript: nobody asked for them. */
function boundInteger(out: Schema): void {
  if (out.minimum === Number.MIN_SAFE_INTEGER) delete out.minimum
  if (out.maximum === Number.MAX_SAFE_INTEGER) delete out.maximum
  out.format = typeof out.maximum === 'number' && out.maximum < 2 ** 31 ? 'int32' : 'int64'
}

function boundString(out: Schema, path: string): void {
  if (out.format !== undefined) {
    // An API server checks the format by itself.
    delete out.pattern
  } else if (out.enum === undefined && out.maxLength === undefined) {
    throw new Error(`${path}: a text needs maxLength`)
  }
}

function intOrString(json: Schema, path: string): Schema {
  const number = json.anyOf?.find((one) => one.type === 'integer')
  const text = json.anyOf?.find((one) => one.type === 'string')
  if (number === undefined || text === undefined || json.anyOf?.length !== 2) {
    throw new Error(`${path}: only a union of a whole number and a text is structural`)
  }
  const shape = structural(text, path)
  const rules = ((shape[CEL_RULES] ?? []) as CelRule[]).map((rule) => ({
    ...rule,
    rule: `type(self) == int || ${rule.rule}`,
  }))
  return {
    ...(json.description === undefined ? {} : { description: json.description }),
    'x-kubernetes-int-or-string': true,
    anyOf: [{ type: 'integer' }, { type: 'string' }],
    minimum: number.minimum,
    maximum: number.maximum,
    maxLength: shape.maxLength,
    [CEL_RULES]: rules,
  }
}
