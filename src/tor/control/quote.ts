import { argumentError, ControlProtocolError } from './errors.ts'

/** What no argument of a command may hold, since it would end the line or the string. */
const FORBIDDEN = /[\r\n\0]/

/**
 * A QuotedString (control-spec, section 2.1.1), quotes included. Throws `ControlArgument` for CR, LF and NUL,
 * which tor's options cannot hold.
 */
export function encodeQuoted(text: string): string {
  if (FORBIDDEN.test(text)) {
    throw argumentError(
      'A value for the control port holds a line break or a NUL: give each value on one line',
    )
  }
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

/**
 * The QuotedString that begins at `start`, with C's escapes as tor writes them, and where it ends (behind the
 * closing quote). Throws ControlProtocolError where there is none.
 */
export function decodeQuoted(text: string, start = 0): { value: string; end: number } {
  const match = /"([^"\\]*(?:\\[\s\S][^"\\]*)*)"/y
  match.lastIndex = start
  const found = match.exec(text)
  if (found === null) throw new ControlProtocolError('A quoted string of the control port does not end')
  const inner = found[1] ?? ''
  return { value: inner.includes('\\') ? unescapeC(inner) : inner, end: match.lastIndex }
}

/** Escapes in octal and hexadecimal name bytes, so the text is put together as bytes. */
function unescapeC(text: string): string {
  const parts: Buffer[] = []
  const pattern = /\\([0-7]{1,3}|x[0-9a-fA-F]{2}|[\s\S])|[^\\]+/gu
  for (const [whole, code] of text.matchAll(pattern)) {
    if (code === undefined) parts.push(Buffer.from(whole))
    else if (/^[0-7]/.test(code)) parts.push(Buffer.of(Number.parseInt(code, 8) & 255))
    else if (code.length === 3) parts.push(Buffer.of(Number.parseInt(code.slice(1), 16)))
    else parts.push(Buffer.from({ n: '\n', r: '\r', t: '\t' }[code] ?? code))
  }
  return Buffer.concat(parts).toString('utf8')
}

export interface ControlArguments {
  /** What has no `=`, in order. */
  words: string[]
  /** What stands behind the first `=` of a key, without quotes; of a repeated key the last. */
  values: Map<string, string>
}

/**
 * Splits `WORD KEY=value KEY="quoted value"` as PROTOCOLINFO, AUTHCHALLENGE and events use it. A word of base64
 * or a relay's `$FINGERPRINT=name` is no key. Throws ControlProtocolError for an unfinished quote.
 */
export function parseArguments(text: string): ControlArguments {
  const words: string[] = []
  const values = new Map<string, string>()
  let at = 0
  while (at < text.length) {
    if (text[at] === ' ') {
      at++
      continue
    }
    const key = keyAt(text, at)
    if (key !== undefined) at += key.length + 1
    let value: string
    if (text[at] === '"') {
      const quoted = decodeQuoted(text, at)
      value = quoted.value
      at = quoted.end
    } else {
      const end = text.indexOf(' ', at)
      value = text.slice(at, end < 0 ? text.length : end)
      at += value.length
    }
    if (key === undefined) words.push(value)
    else values.set(key, value)
  }
  return { words, values }
}

function keyAt(text: string, at: number): string | undefined {
  const pattern = /([A-Za-z][A-Za-z0-9_-]{0,63})=/y
  pattern.lastIndex = at
  return pattern.exec(text)?.[1]
}
