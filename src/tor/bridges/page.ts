import { LINES_LIMITS, type ParsedLines, parseLines } from './lines.ts'

export interface ParsedPage extends ParsedLines {
  /** What it is where it holds no bridge: asks for a proof that a person reads it; nothing at all; anything else. */
  kind: 'bridges' | 'captcha' | 'empty' | 'other'
}

/** Tags that do not end a line of text. */
const INLINE: ReadonlySet<string> = new Set(
  'a abbr b bdi bdo code em font i kbd mark s samp small span strong tt u var wbr'.split(' '),
)
/** What stands in these is no text of the page. */
const HIDDEN: ReadonlySet<string> = new Set(['script', 'style', 'template'])
/** Characters that a bridge line may hold, as HTML may write them. */
const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  apos: "'",
  colon: ':',
  comma: ',',
  equals: '=',
  gt: '>',
  lbrack: '[',
  lowbar: '_',
  lsqb: '[',
  lt: '<',
  nbsp: ' ',
  num: '#',
  period: '.',
  plus: '+',
  quot: '"',
  rbrack: ']',
  rsqb: ']',
  sol: '/',
}
/** A word of its own, which no line holds. A plain line break is only room in HTML. */
const BREAK = ' \0 '
/** Words of one line: more are no arguments that a transport has. */
const WORDS_LIMIT = 40

/**
 * Finds bridges in what a distributor answered: HTML of any make, or plain text. It looks for a transport with an
 * address behind it, so how they are laid out is no matter. Takes time in proportion to the text, whatever it holds.
 * Never throws.
 *
 * @param transports of which bridges are wanted, such as `obfs4`
 */
export function parsePage(page: string, transports: readonly string[]): ParsedPage {
  const candidates = candidatesOf(decode(textOf(page)), new Set(transports))
  const parsed = parseLines(candidates.join('\n'), transports)
  return { ...parsed, kind: parsed.lines.length > 0 ? 'bridges' : kindOf(page) }
}

function kindOf(page: string): ParsedPage['kind'] {
  if (page.trim() === '') return 'empty'
  return /captcha|are you (a )?human|challenge-form|cf-chl/i.test(page) ? 'captcha' : 'other'
}

/** The text without tags, comments and scripts; a tag that parts lines becomes a break. */
function textOf(page: string): string {
  // Of these letters alone: others may become longer, and places in both texts must be the same.
  const lower = page.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
  const parts: string[] = []
  let at = 0
  for (;;) {
    const tag = page.indexOf('<', at)
    if (tag < 0) break
    parts.push(page.slice(at, tag))
    at = endOfTag(lower, tag, parts)
  }
  parts.push(page.slice(at))
  return parts.join('')
}

/** Where the text goes on after what begins at `tag`. What does not end, ends the page. */
function endOfTag(lower: string, tag: number, parts: string[]): number {
  const behind = (text: string, from: number): number => {
    const found = lower.indexOf(text, from)
    return found < 0 ? lower.length : found + text.length
  }
  if (lower.startsWith('<!--', tag)) return behind('-->', tag + 4)
  const name = /<\/?([a-z][a-z0-9]{0,15})|/y
  name.lastIndex = tag
  const element = name.exec(lower)?.[1]
  // A lone `<` is text to a browser too, and no part of a bridge line.
  if (element === undefined && lower[tag + 1] !== '!' && lower[tag + 1] !== '/') {
    parts.push(' ')
    return tag + 1
  }
  const end = behind('>', tag)
  if (element === undefined || !INLINE.has(element)) parts.push(BREAK)
  if (element === undefined || !HIDDEN.has(element) || lower[tag + 1] === '/') return end
  return behind('>', behind(`</${element}`, end))
}

/** Once, as a browser does. Entities without a semicolon stay: in a text that is no HTML they are something else. */
function decode(text: string): string {
  return text.replace(
    /&(?:#(?:x([0-9a-f]{1,6})|([0-9]{1,7}))|([a-z]{1,10}));/gi,
    (whole: string, hex: string | undefined, decimal: string | undefined, name: string | undefined) => {
      if (name !== undefined) return Object.hasOwn(ENTITIES, name) ? ENTITIES[name]! : whole
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
      if (code === 0xa0) return ' '
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole
    },
  )
}

function candidatesOf(text: string, transports: ReadonlySet<string>): string[] {
  const found: string[] = []
  // A line may be wrapped; quotes are around it where the page is a document of another kind.
  const words = text.split(/[\s"'<>]+/)
  for (let at = 0; at < words.length && found.length < LINES_LIMITS.read; at++) {
    const transport = words[at]!.toLowerCase()
    if (!transports.has(transport) || !/:[0-9]{1,5}$/.test(words[at + 1] ?? '')) continue
    const line = [transport, words[at + 1]!]
    at += 2
    if (/^[0-9a-f]{20,}$/i.test(words[at] ?? '')) line.push(words[at++]!)
    while (line.length < WORDS_LIMIT && /^[\w.-]+=./.test(words[at] ?? '')) line.push(words[at++]!)
    at--
    found.push(line.join(' '))
  }
  return found
}
