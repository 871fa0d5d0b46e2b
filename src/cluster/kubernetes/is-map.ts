/** Whether a parsed document is a mapping: neither a list nor a scalar. */
export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
