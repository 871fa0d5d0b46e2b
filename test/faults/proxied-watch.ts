import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * How a watch ends: in order between two events; with its connection, between two events; with its connection in the middle
 * of the next event; or in order, but in the middle of the next event.
 */
export type Tear = 'ended' | 'reset' | 'mid-event' | 'cut-event'

/** A watch on its way through the proxy: whole lines, until it is told otherwise. */
export class ProxiedWatch {
  readonly plural: string
  readonly #client: ServerResponse
  readonly #server: IncomingMessage
  #rest: Buffer = Buffer.alloc(0)
  #tear: 'mid-event' | 'cut-event' | undefined
  #padding = 0
  #silent = false
  #over = false

  constructor(plural: string, client: ServerResponse, server: IncomingMessage) {
    this.plural = plural
    this.#client = client
    this.#server = server
    client.on('close', () => this.#end())
    server.on('data', (chunk: Buffer) => this.#take(chunk))
    server.on('end', () => {
      if (!this.#silent && !this.#over) client.end()
    })
    server.on('error', () => {
      if (!this.#silent) this.#cut()
    })
  }

  /** Nothing comes any more, and nobody is told. */
  silence(): void {
    this.#silent = true
  }

  /** Pads the next event with so many bytes. */
  pad(bytes: number): void {
    this.#padding = bytes
  }

  tear(how: Tear): void {
    if (how === 'ended') {
      this.#end()
      this.#client.end()
    } else if (how === 'reset') this.#cut()
    else this.#tear = how
  }

  #take(chunk: Buffer): void {
    if (this.#over || this.#silent) return
    this.#rest = Buffer.concat([this.#rest, chunk])
    for (let end = this.#rest.indexOf(10); end >= 0 && !this.#over; end = this.#rest.indexOf(10)) {
      const line = this.#rest.subarray(0, end + 1)
      this.#rest = this.#rest.subarray(end + 1)
      this.#pass(this.#padding > 0 ? padded(line, this.#padding) : line)
      this.#padding = 0
    }
  }

  #pass(line: Buffer): void {
    if (this.#tear === undefined) {
      this.#client.write(line)
      return
    }
    const half = line.subarray(0, Math.floor(line.length / 2))
    if (this.#tear === 'cut-event') this.#client.end(half)
    else this.#client.write(half, () => this.#cut())
    this.#end()
  }

  #cut(): void {
    this.#end()
    this.#client.socket?.destroy()
  }

  #end(): void {
    this.#over = true
    this.#server.destroy()
  }
}

/** The event, its object with an annotation of that length. */
function padded(line: Buffer, bytes: number): Buffer {
  const event = JSON.parse(line.toString('utf8')) as {
    object: { metadata: { annotations?: Record<string, string> } }
  }
  const { metadata } = event.object
  metadata.annotations = { ...metadata.annotations, 'test/padding': 'x'.repeat(bytes) }
  return Buffer.from(`${JSON.stringify(event)}\n`)
}
