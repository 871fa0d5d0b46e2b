import { isIP } from 'node:net'

/** One bridge, as a line in the one spelling that Postern has for it. */
export interface BridgeLine {
  /** As tor's option Bridge takes it. Confidential: never to be logged, reported or put into an error. */
  line: string
  transport: string
  /** IP literal, without brackets. */
  host: string
  port: number
  /** 40 hexadecimal digits, upper case. May be told: a bridge is not found by it. */
  fingerprint: string
}

export interface RefusedLine {
  /** Of the line in its text, from 1. */
  number: number
  /** A sentence without its begin, with what to do; holds nothing of the line itself. */
  reason: string
}

export interface ParsedLines {
  /** In canonical order, each bridge once; at most {@link LINES_LIMITS}.kept. */
  lines: BridgeLine[]
  /** The first {@link LINES_LIMITS}.told of them. */
  refused: RefusedLine[]
  /** How many there are in all. */
  refusedCount: number
}

/** The set goes to tor in one command, which may have a megabyte; and tor asks every bridge for its descriptor. */
export const LINES_LIMITS: Readonly<Record<'length' | 'read' | 'kept' | 'told', number>> = {
  /** Characters of a line. */
  length: 1024,
  /** Lines of a text, blank ones included. */
  read: 10_000,
  kept: 200,
  told: 20,
}

/** Arguments that a transport does not work without, and how they look. */
const ARGUMENTS: Readonly<Record<string, Readonly<Record<string, { form: RegExp; means: string }>>>> = {
  obfs4: {
    cert: { form: /^[A-Za-z0-9+/]{70}$/, means: 'the 70 characters of a certificate' },
    'iat-mode': { form: /^[012]$/, means: '0, 1 or 2' },
  },
  meek_lite: { url: { form: /^https?:\/\/./, means: 'an address' } },
  webtunnel: { url: { form: /^https?:\/\/./, means: 'an address' } },
  snowflake: {},
}

/** What tor's log, its control port and a shell all take for plain characters. */
const PLAIN = /^[\t -~]*$/
const QUOTES = /["'`\\]/
const ARGUMENT = /^(?<key>[A-Za-z0-9_.-]{1,64})=(?<value>.+)$/
const FINGERPRINT = /^[0-9a-fA-F]{40}$/
const ADDRESS = /^(?:\[(?<v6>[^\]]*)\]|(?<other>[^[\]]*?)):(?<port>[0-9]{1,5})$/

/**
 * Reads bridges, one a line: `[Bridge] transport address:port fingerprint key=value ...`, as distributors and torrc
 * files have them; blank lines and what follows a `#` are skipped. A line that cannot be used takes nothing from the
 * others. Never throws.
 *
 * Every line has a transport, since a daemon has exactly one, and a fingerprint: health is kept by it, as tor names a
 * bridge by its address until the first connection and by its fingerprint after.
 *
 * @param transports of which bridges are wanted, such as `obfs4`
 */
export function parseLines(text: string, transports: readonly string[]): ParsedLines {
  const found = new Map<string, { bridge: BridgeLine; number: number }>()
  const refused: RefusedLine[] = []
  let refusedCount = 0
  const refuse = (number: number, reason: string): void => {
    refusedCount++
    if (refused.length < LINES_LIMITS.told) refused.push({ number, reason })
  }
  for (const { number, line } of linesOf(text)) {
    if (number > LINES_LIMITS.read) {
      refuse(number, `and all after it are not read: a text has at most ${LINES_LIMITS.read} lines`)
      break
    }
    const read = readLine(line, transports)
    if (read === undefined) continue
    if (typeof read === 'string') {
      refuse(number, read)
      continue
    }
    const key = `${read.fingerprint} ${addressOf(read)}`
    const before = found.get(key)
    if (before === undefined) {
      if (found.size < LINES_LIMITS.kept) found.set(key, { bridge: read, number })
      else refuse(number, `is left out: ${LINES_LIMITS.kept} bridges are the most`)
    } else if (before.bridge.line !== read.line) {
      // Which one stays must not hang on their order.
      const first = before.bridge.line < read.line
      if (!first) found.set(key, { bridge: read, number })
      refuse(
        first ? number : before.number,
        `is the same bridge as line ${first ? before.number : number}, with other arguments: remove one`,
      )
    }
  }
  return { lines: inOrder([...found.values()].map(({ bridge }) => bridge)), refused, refusedCount }
}

/** The same bridges in canonical order. */
export function inOrder(lines: readonly BridgeLine[]): BridgeLine[] {
  return lines.toSorted((a, b) => (a.line < b.line ? -1 : a.line > b.line ? 1 : 0))
}

/** One text for one set of bridges, in whichever order it comes; empty for none. */
export function canonicalText(lines: readonly BridgeLine[]): string {
  return inOrder(lines)
    .map(({ line }) => `${line}\n`)
    .join('')
}

function* linesOf(text: string): Generator<{ number: number; line: string }> {
  let at = text.startsWith('\uFEFF') ? 1 : 0
  for (let number = 1; at < text.length; number++) {
    const found = text.indexOf('\n', at)
    const end = found < 0 ? text.length : found
    yield { number, line: text.slice(at, text[end - 1] === '\r' ? end - 1 : end) }
    at = end + 1
  }
}

/** undefined: there is nothing on it; a text: why it is refused. */
function readLine(text: string, transports: readonly string[]): BridgeLine | string | undefined {
  // Before anything else looks at it.
  if (text.length > LINES_LIMITS.length) return `has more than ${LINES_LIMITS.length} characters`
  const line = text.replace(/(^|\s)#.*$/, '').trim()
  if (line === '') return undefined
  if (!PLAIN.test(line)) return 'has a character that no bridge line has: type it in anew, or copy it as text'
  if (QUOTES.test(line)) return 'has a quote or a backslash: give the line as it is, without quotes'
  const words = line.split(/[\t ]+/)
  if (words[0]!.toLowerCase() === 'bridge') words.shift()
  const [first = '', address = '', fingerprint = '', ...rest] = words
  const transport = transports.find((one) => one === first.toLowerCase())
  if (transport === undefined) return reasonOfTransport(first, transports)
  const at = readAddress(address)
  if (typeof at === 'string') return at
  if (fingerprint === '' || fingerprint.includes('=')) {
    return 'has no fingerprint behind the address: ask for the whole line, since health is kept by the fingerprint'
  }
  if (!FINGERPRINT.test(fingerprint))
    return 'has a fingerprint that is not 40 hexadecimal digits: copy it whole'
  const list = readArguments(rest, transport)
  if (typeof list === 'string') return list
  const bridge = { transport, ...at, fingerprint: fingerprint.toUpperCase() }
  return { line: [transport, addressOf(at), bridge.fingerprint, ...list].join(' '), ...bridge }
}

function reasonOfTransport(word: string, transports: readonly string[]): string {
  const wanted = `this daemon uses ${transports.join(', ')}`
  if (ADDRESS.test(word)) return `has no transport before the address: ${wanted}`
  const known = word.toLowerCase()
  if (Object.hasOwn(ARGUMENTS, known)) return `is a bridge of the transport ${known}: ${wanted}`
  return `does not begin with a transport that is known: ${wanted}`
}

function readAddress(text: string): Pick<BridgeLine, 'host' | 'port'> | string {
  const { v6, other, port = '' } = ADDRESS.exec(text)?.groups ?? {}
  if (v6 === undefined && other === undefined) {
    return 'has no address of the form 192.0.2.1:443 or [2001:db8::1]:443 behind the transport'
  }
  const number = Number(port)
  if (number < 1 || number > 65_535) return 'has a port that is not from 1 to 65535'
  const host = v6 === undefined ? v4Of(other!) : v6Of(v6)
  if (host === undefined) {
    return isIP(other ?? '') === 6
      ? 'has an IPv6 address without brackets: write [address]:port'
      : 'has an address that is no IP address: tor resolves no names for bridges'
  }
  if (/^(0|22[4-9]|2[34][0-9]|25[0-5])\./.test(host) || /^(::$|ff..:)/.test(host)) {
    return 'has an address that no bridge can have'
  }
  return { host, port: number }
}

function v4Of(text: string): string | undefined {
  return isIP(text) === 4 ? text : undefined
}

/** In its shortest spelling; undefined for what is none, or only holds on this machine (`%eth0`). */
function v6Of(text: string): string | undefined {
  if (isIP(text) !== 6 || text.includes('%')) return undefined
  return new URL(`http://[${text}]/`).hostname.slice(1, -1)
}

function addressOf({ host, port }: Pick<BridgeLine, 'host' | 'port'>): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** By key, since their order means nothing to a transport. */
function readArguments(words: readonly string[], transport: string): string[] | string {
  const values = new Map<string, string>()
  for (const word of words) {
    const { key, value } = ARGUMENT.exec(word)?.groups ?? {}
    if (key === undefined || value === undefined) {
      return 'has something behind the fingerprint that is not of the form key=value: copy the line whole'
    }
    if (values.has(key)) return 'has an argument twice: remove one'
    values.set(key, value)
  }
  const needed = Object.hasOwn(ARGUMENTS, transport) ? ARGUMENTS[transport]! : {}
  for (const [key, { form, means }] of Object.entries(needed)) {
    const value = values.get(key)
    if (value === undefined) return `has no ${key}=, which ${transport} needs: copy the line whole`
    if (!form.test(value)) return `has a ${key}= that is not ${means}: copy the line whole`
  }
  return [...values].map(([key, value]) => `${key}=${value}`).sort()
}
