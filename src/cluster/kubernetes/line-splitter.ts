const NEWLINE = 10

/** Cuts a stream of bytes into lines. Decodes whole lines only, so a character that is split over chunks stays whole. */
export class LineSplitter {
  readonly #limit: number
  #parts: Buffer[] = []
  #size = 0

  /** @param limit bytes of a line, at most */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Bytes of the line that has begun and not ended. */
  get pending(): number {
    return this.#size
  }

  /**
   * The lines that end in this chunk, without their ends.
   *
   * @throws RangeError when a line is too long
   */
  *push(chunk: Buffer): Generator<string> {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#add(chunk.subarray(start, end))
      start = end + 1
      const line = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts, this.#size)
      this.#parts = []
      this.#size = 0
      yield line.toString('utf8')
    }
    if (start < chunk.length) this.#add(chunk.subarray(start))
  }

  #add(part: Buffer): void {
    this.#size += part.length
    if (this.#size > this.#limit) throw new RangeError(`a line is longer than ${this.#limit} bytes`)
    this.#parts.push(part)
  }
}
