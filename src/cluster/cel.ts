import { z } from 'zod'

/** Rules that the API server checks in CEL, where zod checks them on one machine. */

/** One `x-kubernetes-validations` entry; `self` is the value that the schema describes. */
export interface CelRule {
  rule: string
  /** What a user reads when the rule is broken: the same words as zod's. */
  message?: string
  /** A message that is worked out: CEL that gives a text. */
  messageExpression?: string
  /** Field below the value that the error names, e.g. `.metadata.name`. */
  fieldPath?: string
}

export const CEL_RULES = 'x-kubernetes-validations'

/** The schema with further CEL rules: for what zod checks by code (`refine`, `superRefine`). */
export function withRules<T extends z.ZodType>(schema: T, ...rules: CelRule[]): T {
  const before = (schema.meta()?.[CEL_RULES] ?? []) as CelRule[]
  return schema.meta({ [CEL_RULES]: [...before, ...rules] })
}

/**
 * A field that nobody may set. It is part of the schema so that it is refused with a reason: what a schema does not
 * know, an API server drops in silence.
 *
 * @param type of the values that a user may try
 */
export function refusedField(message: string, type: 'string' | 'object'): z.ZodType {
  const shape =
    type === 'string' ? { type, maxLength: 253 } : { type, 'x-kubernetes-preserve-unknown-fields': true }
  return z
    .never({ error: message })
    .meta({ ...shape, description: `May not be set: ${message}.`, [CEL_RULES]: [{ rule: 'false', message }] })
    .optional()
}

/** A text as a CEL literal. */
export function celString(text: string): string {
  return `'${text.replace(/[\\']/g, (character) => `\\${character}`).replace(/\n/g, '\\n')}'`
}

/** A list of texts as a CEL literal. */
export function celList(texts: readonly string[]): string {
  return `[${texts.map(celString).join(', ')}]`
}

/**
 * The rule that no two items of a list have the same value in a field.
 *
 * @param message with the value in the place of `%d` or `%s`
 */
export function uniqueRule(field: string, message: string): CelRule {
  const once = `self.exists_one(other, other.${field} == item.${field})`
  return {
    rule: `self.all(item, ${once})`,
    messageExpression: `${celString(message)}.format([self.filter(item, !${once})[0].${field}])`,
  }
}
