import { ControlProtocolError } from './errors.ts'

/** Longest line, in bytes with its end. */
export const LINE_LIMIT: number = 64 * 1024
/** Largest data block, in bytes. */
export const DATA_LIMIT: number = 4 * 1024 * 1024
/** Most lines of one message; each `+` line counts once. */
export const MESSAGE_LINES_LIMIT = 10_000

export interface ControlLine {
  /** Three digits. */
  code: number
  /** `-` and `+` are followed by more lines, a blank ends the message; `+` has a data block. */
  separator: ' ' | '-' | '+'
  text: string
  /** The lines of the data block joined by `\n`, without the dots that protect them and without a last `\n`. */
  data?: string
}

export interface ControlMessage {
  /** `event` for codes of 6xx, which come between replies without being asked for. */
  kind: 'reply' | 'event'
  /** Of the last line: within one reply earlier lines may carry other codes. */
  code: number
  lines: ControlLine[]
}

const LF = 10
const CR = 13
const DOT = 46

/**
 * Incremental parser of what tor sends on a control connection (control-spec, section 2.3). Lines end with CR LF
 * and nothing else. Whatever the bytes and however they are cut, `push` returns messages or throws
 * ControlProtocolError; after that it throws the same error for ever.
 */
export class ControlParser {
  readonly #parts: Buffer[] = []
  #partsSize = 0
  #lines: ControlLine[] = []
  /** Set while inside a data block: its line, and what the block holds so far. */
  #block: { line: ControlLine; rows: string[]; size: number } | undefined
  #messageSize = 0
  #failure: ControlProtocolError | undefined

  /** The messages that this chunk completes, in order. */
  push(chunk: Buffer): ControlMessage[] {
    if (this.#failure !== undefined) throw this.#failure
    const messages: ControlMessage[] = []
    let start = 0
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
      const message = this.#line(this.#complete(chunk.subarray(start, end + 1)))
      if (message !== undefined) messages.push(message)
      start = end + 1
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start))
    return messages
  }

  /** Whether a message has begun that is not complete: the peer left in the middle of it. */
  get partial(): boolean {
    return this.#partsSize > 0 || this.#lines.length > 0 || this.#block !== undefined
  }

  #keep(part: Buffer): void {
    this.#partsSize += part.length
    if (this.#partsSize > LINE_LIMIT) this.#fail(`a line is longer than ${LINE_LIMIT} bytes`)
    // A copy, since a small part must not hold on to the whole chunk it came in.
    this.#parts.push(Buffer.from(part))
  }

  /** One line without its CR LF. */
  #complete(end: Buffer): Buffer {
    if (this.#partsSize + end.length > LINE_LIMIT) this.#fail(`a line is longer than ${LINE_LIMIT} bytes`)
    const line = this.#parts.length === 0 ? end : Buffer.concat([...this.#parts, end])
    this.#parts.length = 0
    this.#partsSize = 0
    if (line.length < 2 || line[line.length - 2] !== CR) this.#fail('a line ends without a carriage return')
    return line.subarray(0, line.length - 2)
  }

  #line(line: Buffer): ControlMessage | undefined {
    return this.#block === undefined ? this.#replyLine(line) : this.#dataLine(line, this.#block)
  }

  #replyLine(bytes: Buffer): ControlMessage | undefined {
    const text = bytes.toString('utf8')
    const separator = text[3]
    if (!/^[2-6][0-9]{2}/.test(text) || (separator !== ' ' && separator !== '-' && separator !== '+')) {
      this.#fail('a line does not begin with a status code')
    }
    const code = Number(text.slice(0, 3))
    const first = this.#lines[0]
    if (first !== undefined && isEvent(first.code) !== isEvent(code)) {
      this.#fail('an event and a reply are mixed in one message')
    }
    if (this.#lines.length >= MESSAGE_LINES_LIMIT) {
      this.#fail(`a message has more than ${MESSAGE_LINES_LIMIT} lines`)
    }
    this.#messageSize += bytes.length
    if (this.#messageSize > DATA_LIMIT) this.#fail(`a message is larger than ${DATA_LIMIT} bytes`)
    const line: ControlLine = { code, separator, text: text.slice(4) }
    this.#lines.push(line)
    if (separator === '+') this.#block = { line, rows: [], size: 0 }
    if (separator !== ' ') return undefined
    const lines = this.#lines
    this.#lines = []
    this.#messageSize = 0
    return { kind: isEvent(code) ? 'event' : 'reply', code, lines }
  }

  #dataLine(bytes: Buffer, block: { line: ControlLine; rows: string[]; size: number }): undefined {
    if (bytes.length === 1 && bytes[0] === DOT) {
      block.line.data = block.rows.join('\n')
      this.#block = undefined
      return
    }
    // Two bytes more for the end of the line: a block of empty lines is bounded as well.
    block.size += bytes.length + 2
    this.#messageSize += bytes.length + 2
    if (this.#messageSize > DATA_LIMIT) this.#fail(`a data block is larger than ${DATA_LIMIT} bytes`)
    block.rows.push(bytes.toString('utf8', bytes[0] === DOT ? 1 : 0))
  }

  #fail(what: string): never {
    this.#parts.length = 0
    this.#lines = []
    this.#block = undefined
    const message = `The control connection carries something else than tor's protocol (${what}): check that the control port is tor's`
    this.#failure = new ControlProtocolError(message)
    throw this.#failure
  }
}

function isEvent(code: number): boolean {
  return code >= 600
}
