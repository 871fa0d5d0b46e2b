import { z } from 'zod'
import { nearest } from '../core/nearest.ts'
import type { Kind, Resource } from '../core/resource.ts'

/** A fault in a document, at a path of members and indexes. */
export interface Problem {
  path: (string | number)[]
  message: string
}

/** A column of `get`, and of the CRD's printer columns. */
export interface Column {
  /** Upper case, as printed. */
  name: string
  type: 'string' | 'boolean' | 'integer' | 'date'
  /** Path as in a CRD: `.status.hostname`, `.status.conditions[?(@.type=="Ready")].reason`. */
  jsonPath: string
  /** 1: only with `-o wide`. */
  priority?: 0 | 1
}

/** A kind of our own: its schema decides what is accepted, its columns what `get` shows. */
export interface ApiKind<T extends Resource = Resource> extends Kind<T> {
  spec: z.ZodType
  /** True where an object without a spec is whole. */
  specOptional?: true
  status: z.ZodType
  /** Schema of `metadata.name`, where a kind asks more than Kubernetes does. */
  name?: z.ZodType
  /** One sentence on what the kind is for. */
  description: string
  columns: Column[]
  validate(document: unknown): Problem[]
}

/** RFC 1123 subdomain, as Kubernetes asks of most names. */
export const NAME_PATTERN: RegExp = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
/** RFC 1035 label, as Kubernetes asks of the names of Services. */
export const SERVICE_NAME_PATTERN: RegExp = /^[a-z]([-a-z0-9]*[a-z0-9])?$/

/**
 * A reference to an object of the same namespace that is, or becomes, a Service.
 *
 * @param most characters; less than 63 where something is appended to the name
 */
export function serviceName(what: string, most: number = 63): z.ZodString {
  return z
    .string()
    .max(most, `must be at most ${most} characters, since it names ${what}`)
    .regex(
      SERVICE_NAME_PATTERN,
      `must be lower-case letters, digits and '-', begin with a letter and end with a letter or digit, since it names ${what}`,
    )
}

/** Any object's name, or one of at most so many characters. */
export function objectName(most: number = 253): z.ZodString {
  return z
    .string()
    .min(1, 'must not be empty')
    .max(most, `must be at most ${most} characters`)
    .regex(NAME_PATTERN, "must be lower-case letters, digits, '-' and '.', as every name in Kubernetes")
}

/** A key of a Secret or ConfigMap. */
export function dataKey(): z.ZodString {
  return z
    .string()
    .min(1, 'must not be empty')
    .max(253, 'must be at most 253 characters')
    .regex(/^[-._a-zA-Z0-9]+$/, "must be letters, digits, '-', '_' and '.', as every key of a Secret")
}

export function portNumber(description: string): z.ZodNumber {
  return z
    .int({ error: 'must be a whole number from 1 to 65535' })
    .min(1, 'must be from 1 to 65535')
    .max(65535, 'must be from 1 to 65535')
    .describe(description)
}

/**
 * Makes the validator of a kind: unknown members are refused with the nearest known one, all faults are reported.
 *
 * @param name schema of `metadata.name`, where a kind asks more than Kubernetes does
 */
export function validator(
  kind: Pick<Kind, 'apiVersion' | 'kind'>,
  spec: z.ZodType,
  name: z.ZodType = objectName(),
): (document: unknown) => Problem[] {
  const schema = z.looseObject({
    apiVersion: z.literal(kind.apiVersion),
    kind: z.literal(kind.kind),
    metadata: z.looseObject({ name }),
    spec,
  })
  const members = ['apiVersion', 'kind', 'metadata', 'spec', 'status']
  return (document) => {
    const parsed = schema.safeParse(document, { reportInput: true })
    const problems = parsed.success ? [] : parsed.error.issues.flatMap((issue) => problemsOf(issue, spec))
    if (typeof document === 'object' && document !== null) {
      for (const key of Object.keys(document)) {
        if (!members.includes(key)) problems.push(unknownMember([], key, members))
      }
    }
    return problems
  }
}

function problemsOf(issue: z.core.$ZodIssue, spec: z.ZodType): Problem[] {
  const path = issue.path.map((part) => (typeof part === 'number' ? part : String(part)))
  if (issue.code === 'unrecognized_keys') {
    const known = membersAt(spec, path.slice(1))
    return issue.keys.map((key) => unknownMember(path, key, known))
  }
  if (issue.code === 'invalid_type' && issue.input === undefined) return [{ path, message: 'is required' }]
  return [{ path, message: issue.message.replace(/^Invalid input: /, '') }]
}

function unknownMember(path: (string | number)[], key: string, known: string[]): Problem {
  const near = nearest(key, known)
  const hint = near === undefined ? `known here: ${known.join(', ')}` : `did you mean '${near}'?`
  return { path: [...path, key], message: `unknown field; ${hint}` }
}

/** Names of the members that a schema has at a path, for hints. */
function membersAt(schema: z.ZodType, path: (string | number)[]): string[] {
  let here: unknown = schema
  for (const part of path) {
    here = unwrap(here)
    if (here instanceof z.ZodObject) here = here.shape[part as string]
    else if (here instanceof z.ZodArray) here = here.element
    else if (here instanceof z.ZodRecord) here = here.valueType
    else return []
  }
  here = unwrap(here)
  if (!(here instanceof z.ZodObject)) return []
  return Object.keys(here.shape).filter((key) => !(unwrap(here.shape[key]) instanceof z.ZodNever))
}

function unwrap(schema: unknown): unknown {
  let here = schema
  while (
    here instanceof z.ZodOptional ||
    here instanceof z.ZodDefault ||
    here instanceof z.ZodNullable ||
    here instanceof z.ZodPipe
  ) {
    here = here instanceof z.ZodPipe ? here.in : here.unwrap()
  }
  return here
}
