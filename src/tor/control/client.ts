import { type AddOnion, addOnionCommand } from './add-onion.ts'
import { type AuthenticateOptions, authenticate, type ProtocolInfo } from './authenticate.ts'
import {
  type CommandOptions,
  type ConnectOptions,
  ControlConnection,
  type ControlTarget,
} from './connection.ts'
import { argumentError, ControlProtocolError } from './errors.ts'
import { parseEvent, type TorEvent } from './events.ts'
import type { ControlMessage } from './parser.ts'
import { decodeQuoted, encodeQuoted } from './quote.ts'

export type TorEventListener = (event: TorEvent, message: ControlMessage) => void

/**
 * A client of tor's control port (control-spec). Every method rejects as `command` does: ControlError for a
 * refusal, PosternError with `ControlTimeout`, `ControlClosed`, `ControlBusy` or `ControlArgument` else.
 */
export class ControlClient implements AsyncDisposable {
  readonly #connection: ControlConnection
  readonly #listeners: Set<TorEventListener>

  private constructor(connection: ControlConnection, listeners: Set<TorEventListener>) {
    this.#connection = connection
    this.#listeners = listeners
  }

  /** Connects without authenticating. Throws `ControlUnreachable`, or the signal's reason. */
  static async connect(target: ControlTarget, options: ConnectOptions = {}): Promise<ControlClient> {
    const listeners = new Set<TorEventListener>()
    const connection = await ControlConnection.connect(target, (message) => tell(listeners, message), options)
    return new ControlClient(connection, listeners)
  }

  /** Settles once, never rejects: undefined after `close()`, else why the connection ended. */
  get closed(): Promise<Error | undefined> {
    return this.#connection.closed
  }

  /** See `authenticate` in authenticate.ts. Once a connection; the connection is closed when it fails. */
  async authenticate(options: AuthenticateOptions = {}): Promise<ProtocolInfo> {
    try {
      return await authenticate(this.#connection, options)
    } catch (error) {
      await this.close()
      throw error
    }
  }

  /** Any command; resolves with its 2xx reply. Arguments must be quoted by the caller. */
  command(line: string, options: CommandOptions = {}): Promise<ControlMessage> {
    return this.#connection.command(line, options)
  }

  /** GETINFO: the value of every key; a value of several lines has them joined by `\n`. */
  async getInfo(...keys: string[]): Promise<Record<string, string>> {
    if (keys.length === 0) return {}
    for (const key of keys)
      checkWord(key, /^[\x21-\x7e]+$/, 'A key of GETINFO has printable characters without blanks')
    const found = new Map<string, string>()
    for (const line of (await this.command(`GETINFO ${keys.join(' ')}`)).lines) {
      if (line.separator === ' ') continue
      const key = keys.find((wanted) => line.text.startsWith(`${wanted}=`))
      if (key !== undefined) found.set(key, line.data ?? line.text.slice(key.length + 1))
    }
    const missing = keys.find((key) => !found.has(key))
    if (missing !== undefined) throw new ControlProtocolError(`tor's reply to GETINFO lacks ${missing}`)
    return Object.fromEntries(found)
  }

  /** GETCONF: all values of every option in tor's spelling; none for one that stands at its default of nothing. */
  async getConf(...names: string[]): Promise<Record<string, string[]>> {
    if (names.length === 0) return {}
    const found = new Map<string, string[]>()
    for (const { text } of (await this.command(`GETCONF ${options(names)}`)).lines) {
      const at = text.indexOf('=')
      const name = at < 0 ? text : text.slice(0, at)
      const values = found.get(name) ?? []
      if (at >= 0) values.push(unquoted(text.slice(at + 1)))
      found.set(name, values)
    }
    return Object.fromEntries(found)
  }

  /**
   * SETCONF, all or nothing: a list option is given once a value, undefined sets to 0 or nothing. An option that
   * is named loses all values that are not given.
   */
  async setConf(entries: readonly (readonly [string, string | undefined])[]): Promise<void> {
    if (entries.length === 0) return
    const words = entries.map(([name, value]) =>
      value === undefined ? options([name]) : `${options([name])}=${encodeQuoted(value)}`,
    )
    await this.command(`SETCONF ${words.join(' ')}`)
  }

  /** RESETCONF, all or nothing: puts options back to their defaults. */
  async resetConf(...names: string[]): Promise<void> {
    if (names.length > 0) await this.command(`RESETCONF ${options(names)}`)
  }

  /** ADD_ONION. 550 when tor already has the key. Compare the service id with the address of the key. */
  async addOnion(onion: AddOnion): Promise<{ serviceId: string }> {
    const reply = await this.command(addOnionCommand(onion))
    for (const { text } of reply.lines) {
      const serviceId = /^ServiceID=([a-z2-7]{56})$/.exec(text)?.[1]
      if (serviceId !== undefined) return { serviceId }
    }
    throw new ControlProtocolError("tor's reply to ADD_ONION lacks the service id")
  }

  /** DEL_ONION, of an onion that is detached or of this connection (else 552). tor compares by case, so lower it. */
  async delOnion(address: string): Promise<void> {
    await this.command(`DEL_ONION ${onionId(address)}`)
  }

  /**
   * ONION_CLIENT_AUTH_ADD: with which private key (32 bytes of x25519) tor opens a private onion's descriptor. Replaces
   * the one that it had; lost when tor ends.
   */
  async addClientAuth(address: string, secret: Uint8Array): Promise<void> {
    if (secret.length !== 32) throw argumentError('A private key of x25519 has 32 bytes')
    const key = Buffer.from(secret).toString('base64')
    await this.command(`ONION_CLIENT_AUTH_ADD ${onionId(address)} x25519:${key}`)
  }

  /** ONION_CLIENT_AUTH_REMOVE: forgets the key and the descriptor that it opened. */
  async removeClientAuth(address: string): Promise<void> {
    await this.command(`ONION_CLIENT_AUTH_REMOVE ${onionId(address)}`)
  }

  /** CLOSECIRCUIT. 552 when there is no such circuit. @param ifUnused one with a stream stays */
  async closeCircuit(id: string, { ifUnused = false }: { ifUnused?: boolean } = {}): Promise<void> {
    checkWord(id, /^[A-Za-z0-9]{1,16}$/, 'The identifier of a circuit has letters and digits')
    await this.command(`CLOSECIRCUIT ${id}${ifUnused ? ' IfUnused' : ''}`)
  }

  /** SETEVENTS: replaces the set of events. One unknown name (552) leaves it as it was. */
  async setEvents(names: readonly string[]): Promise<void> {
    for (const name of names)
      checkWord(name, /^[A-Z0-9_]+$/, 'The name of an event has capitals, digits and _')
    await this.command(['SETEVENTS', ...names].join(' '))
  }

  /** SIGNAL, e.g. RELOAD, NEWNYM, SHUTDOWN. */
  async signal(name: string): Promise<void> {
    checkWord(name, /^[A-Z0-9]+$/, 'The name of a signal has capitals')
    await this.command(`SIGNAL ${name}`)
  }

  /** TAKEOWNERSHIP: tor ends at once when this connection does. Best on a connection that does nothing else. */
  async takeOwnership(): Promise<void> {
    await this.command('TAKEOWNERSHIP')
  }

  /** Calls the listener for every event until the returned function is called. What it throws is uncaught. */
  onEvent(listener: TorEventListener): () => void {
    // Its own function, so that one listener that is added twice is also removed twice.
    const entry: TorEventListener = (event, message) => listener(event, message)
    this.#listeners.add(entry)
    return () => this.#listeners.delete(entry)
  }

  /** Ends the connection; waiting commands reject with `ControlClosed`. Resolves once it is closed. */
  close(): Promise<void> {
    return this.#connection.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

function tell(listeners: Set<TorEventListener>, message: ControlMessage): void {
  const event = parseEvent(message)
  for (const listener of [...listeners]) {
    try {
      listener(event, message)
    } catch (error) {
      // A fault of the listener is not one of the connection, nor of the next listener.
      queueMicrotask(() => {
        throw error
      })
    }
  }
}

function options(names: readonly string[]): string {
  for (const name of names) {
    checkWord(name, /^[A-Za-z_][A-Za-z0-9_]*$/, 'The name of a tor option has letters, digits and _')
  }
  return names.join(' ')
}

/** tor quotes only those values that would be misread in a torrc; one that begins with a quote is always among them. */
function unquoted(value: string): string {
  return value.startsWith('"') ? decodeQuoted(value).value : value
}

function onionId(address: string): string {
  const id = address.toLowerCase().replace(/\.onion$/, '')
  checkWord(id, /^[a-z2-7]{56}$/, 'An onion address has 56 characters of a-z and 2-7')
  return id
}

function checkWord(word: string, pattern: RegExp, message: string): void {
  if (!pattern.test(word)) throw argumentError(message)
}
