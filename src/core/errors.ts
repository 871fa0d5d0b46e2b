/**
 * One error class for everything that Postern itself finds wrong. Code is stable and programmatic; the message
 * says what is wrong and what to do next, for a person.
 */
export class PosternError extends Error {
  override readonly name: string = 'PosternError'
  readonly code: string

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The `code` of anything that was thrown (`ENOENT`, `Conflict`, …), if it has one. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' ? code : undefined
}
