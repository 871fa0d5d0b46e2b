import { connect, type Socket } from 'node:net'
import { codeOf, messageOf, PosternError } from '../../core/errors.ts'
import { argumentError, ControlError, ControlProtocolError } from './errors.ts'
import { type ControlMessage, ControlParser } from './parser.ts'

/** Longest command line that tor reads, in bytes (its source: MAX_COMMAND_LINE_LENGTH). */
export const COMMAND_LIMIT: number = 1024 * 1024
/** Most commands without a reply: a tor that answers nothing must not fill the memory. */
const PENDING_LIMIT = 1024
const DEFAULT_TIMEOUT_MS = 30_000
/** How long a peer that does not read may hold up a close. */
const CLOSE_TIMEOUT_MS = 1000

export type ControlTarget = { path: string } | { host: string; port: number }

export interface ConnectOptions {
  timeoutMs?: number
  signal?: AbortSignal
}

export interface CommandOptions {
  /** Data block of the command, without dots; LF and CR LF both end a line. */
  data?: string
  timeoutMs?: number
}

interface Pending {
  keyword: string
  resolve: (message: ControlMessage) => void
  reject: (error: Error) => void
  timer: NodeJS.Timeout
}

/** One connection to a control port: bytes to messages, and replies to the commands they answer, in order. */
export class ControlConnection {
  /** Settles once, never rejects: undefined after `close()`, else why the connection ended. */
  readonly closed: Promise<Error | undefined>
  readonly #socket: Socket
  readonly #parser = new ControlParser()
  /** tor answers in the order of the commands, so the first one waits for the next reply. */
  readonly #pending: Pending[] = []
  readonly #onEvent: (message: ControlMessage) => void
  #end: { error: Error | undefined } | undefined

  private constructor(socket: Socket, onEvent: (message: ControlMessage) => void) {
    this.#socket = socket
    this.#onEvent = onEvent
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('error', (cause) =>
      this.#finish(closedError(`the connection failed: ${messageOf(cause)}`, cause)),
    )
    socket.on('end', () => this.#finish(this.#ended()))
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#finish(closedError('the connection was closed'))
        resolve(this.#end?.error)
      })
    })
  }

  /**
   * Connects. Throws `ControlUnreachable` when nothing answers in `timeoutMs` (10 s) or the connection is
   * refused, and the signal's reason when it aborts.
   */
  static async connect(
    target: ControlTarget,
    onEvent: (message: ControlMessage) => void,
    { timeoutMs = 10_000, signal }: ConnectOptions = {},
  ): Promise<ControlConnection> {
    signal?.throwIfAborted()
    const socket = connect(target)
    const limit = AbortSignal.timeout(timeoutMs)
    const stop = signal === undefined ? limit : AbortSignal.any([signal, limit])
    try {
      await connected(socket, stop)
    } catch (cause) {
      socket.destroy()
      signal?.throwIfAborted()
      const why = limit.aborted ? `no answer in ${timeoutMs} ms` : (codeOf(cause) ?? messageOf(cause))
      const message = `tor's control port cannot be reached (${why}): check that tor runs and that the port is the one of its torrc`
      throw new PosternError('ControlUnreachable', message, { cause })
    }
    return new ControlConnection(socket, onEvent)
  }

  /**
   * Sends a command and resolves with its 2xx reply. Commands are sent at once and answered in order. Rejects with
   * ControlError (any other status), `ControlTimeout` (tor may still carry the command out), `ControlClosed`,
   * `ControlBusy` or `ControlArgument` (nothing was sent). No error holds the command line.
   */
  command(
    line: string,
    { data, timeoutMs = DEFAULT_TIMEOUT_MS }: CommandOptions = {},
  ): Promise<ControlMessage> {
    const keyword = /^[A-Za-z_]+/.exec(line)?.[0]?.toUpperCase()
    if (keyword === undefined || /[\r\n\0]/.test(line)) {
      return Promise.reject(argumentError('A control command must be one line that begins with its keyword'))
    }
    const bytes = Buffer.from(data === undefined ? `${line}\r\n` : `+${line}\r\n${dataBlock(data)}`)
    if (bytes.length > COMMAND_LIMIT) {
      const message = `${keyword} would have ${bytes.length} bytes and tor reads ${COMMAND_LIMIT}: split it`
      return Promise.reject(argumentError(message))
    }
    if (this.#end !== undefined) return Promise.reject(this.#closedFor(keyword))
    if (this.#pending.length >= PENDING_LIMIT) {
      const message = `tor has not answered ${PENDING_LIMIT} commands: it hangs, restart it`
      return Promise.reject(new PosternError('ControlBusy', message))
    }
    return new Promise((resolve, reject) => {
      // The place in the queue stays after the limit, since tor's reply may still come and is this command's.
      const timer = setTimeout(() => {
        const message = `tor did not answer ${keyword} in ${timeoutMs} ms: it may still carry it out, so look at its state before the next try`
        reject(new PosternError('ControlTimeout', message))
      }, timeoutMs)
      this.#pending.push({ keyword, resolve, reject, timer })
      this.#socket.write(bytes)
    })
  }

  /** Ends the connection after what was already sent; waiting commands reject with `ControlClosed`. */
  async close(): Promise<void> {
    this.#finish(undefined)
    await this.closed
  }

  #receive(chunk: Buffer): void {
    if (this.#end !== undefined) return
    let messages: ControlMessage[]
    try {
      messages = this.#parser.push(chunk)
    } catch (error) {
      this.#finish(error as ControlProtocolError)
      return
    }
    for (const message of messages) {
      if (message.kind === 'event') this.#onEvent(message)
      else this.#answer(message)
    }
  }

  #answer(message: ControlMessage): void {
    const pending = this.#pending.shift()
    if (pending === undefined) {
      this.#finish(
        new ControlProtocolError('tor answered a command that was never sent: check what the port leads to'),
      )
      return
    }
    clearTimeout(pending.timer)
    if (message.code < 300) pending.resolve(message)
    else pending.reject(refusal(pending.keyword, message))
  }

  #finish(error: Error | undefined): void {
    if (this.#end !== undefined) return
    this.#end = { error }
    for (const pending of this.#pending.splice(0)) {
      clearTimeout(pending.timer)
      pending.reject(this.#closedFor(pending.keyword))
    }
    if (error instanceof ControlProtocolError) {
      this.#socket.destroy()
      return
    }
    this.#socket.destroySoon()
    const limit = setTimeout(() => this.#socket.destroy(), CLOSE_TIMEOUT_MS)
    this.#socket.once('close', () => clearTimeout(limit))
  }

  #ended(): Error {
    return closedError(this.#parser.partial ? 'tor ended it in the middle of a message' : 'tor ended it')
  }

  #closedFor(keyword: string): PosternError {
    const cause = this.#end?.error
    const message = `The control connection closed before tor answered ${keyword}: connect again and look at tor's state`
    return new PosternError('ControlClosed', message, cause === undefined ? {} : { cause })
  }
}

function refusal(keyword: string, message: ControlMessage): ControlError {
  // In a reply of several lines the refusing ones matter, not what was fine.
  const texts = message.lines.filter((line) => line.code >= 300).map((line) => line.text)
  return new ControlError(keyword, message.code, texts.slice(0, 8).join('; '))
}

function closedError(why: string, cause?: unknown): PosternError {
  return new PosternError('ControlClosed', `The control connection is closed (${why}): connect again`, {
    cause,
  })
}

function dataBlock(data: string): string {
  const lines = data.split(/\r?\n/)
  return `${lines.map((line) => (line.startsWith('.') ? `.${line}` : line)).join('\r\n')}\r\n.\r\n`
}

function connected(socket: Socket, stop: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => settle(() => reject(stop.reason))
    const fail = (error: Error): void => settle(() => reject(error))
    const succeed = (): void => settle(resolve)
    const settle = (then: () => void): void => {
      stop.removeEventListener('abort', abort)
      socket.off('connect', succeed).off('error', fail)
      then()
    }
    stop.addEventListener('abort', abort, { once: true })
    socket.once('connect', succeed).once('error', fail)
  })
}
