import { stripVTControlCharacters, styleText } from 'node:util'

type Format = Parameters<typeof styleText>[0]

/** Colours where the output is a terminal and NO_COLOR is not set (https://no-color.org). */
export type Style = (format: Format, text: string) => string

export function styleFor(
  stream: { isTTY?: boolean },
  env: Record<string, string | undefined> = process.env,
): Style {
  const coloured = stream.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
  return (format, text) => (coloured ? styleText(format, text, { validateStream: false }) : text)
}

export const plain: Style = (_format, text) => text

/** Text of an object or of another program, made harmless for a terminal. */
export function printable(text: string): string {
  return stripVTControlCharacters(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')
}
