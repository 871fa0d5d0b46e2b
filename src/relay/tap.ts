import { type OnReadOpts, Socket } from 'node:net'
import { giveBack, lend, lose, SMALL } from './buffer-pool.ts'

/**
 * Reads a socket into lent buffers (net's `onread`) and writes them on, instead of one new 64 KiB buffer for each 'data'
 * event. Mostly a write is done when it returns, then the same buffer is read into again. Bulk gets large buffers: that
 * moves more bytes than haproxy's splice() does, where 'data' events stay below it.
 *
 * A socket with a tap emits no 'data'; it emits 'end', 'error' and 'close' as ever.
 */
export class Tap {
  #socket: Socket | undefined
  #to: Socket | undefined
  #current: Buffer | undefined
  /** Lent ones whose bytes the other socket hasn't sent yet. */
  #held: Buffer[] = []
  #bulk = false
  #dropping = false

  /** For the socket's constructor. */
  readonly onread: OnReadOpts = {
    buffer: () => (this.#current ??= lend(this.#bulk)),
    callback: (length) => this.#take(length),
  }

  /** Tells the tap its socket, which must not read before `pour`. */
  fit(socket: Socket): void {
    this.#socket = socket
    taps.set(socket, this)
    socket.once('close', () => this.#dispose())
  }

  /** Where everything goes from now on; waits while that side can't take more. */
  pour(to: Socket): void {
    this.#to = to
    to.on('drain', () => {
      this.#reclaim()
      this.#socket?.resume()
    })
  }

  /** Whatever comes from now on is read and thrown away. */
  drop(): void {
    this.#dropping = true
  }

  #take(length: number): boolean {
    const to = this.#to
    const buffer = this.#current
    if (this.#dropping || !to || !buffer) return true
    const waiting = to.writableLength > 0
    if (!waiting && this.#held.length > 0) this.#reclaim()
    // A few bytes behind others that wait: copied, rather than a whole buffer held for them.
    const copied = waiting && length < buffer.length / 2
    const chunk = buffer.subarray(0, length)
    const more = to.write(copied ? Buffer.from(chunk) : chunk)
    if (!copied && to.writableLength > 0) {
      this.#held.push(buffer)
      this.#current = undefined
    }
    this.#resize(length === buffer.length, length <= SMALL / 2)
    // More than the high-water mark at once counts as full even when all of it has gone out already.
    return more || to.writableLength === 0
  }

  #resize(full: boolean, little: boolean): void {
    if (full) this.#bulk = true
    else if (little) this.#bulk = false
    const current = this.#current
    if (current && this.#bulk === (current.length === SMALL)) {
      giveBack(current)
      this.#current = undefined
    }
  }

  #reclaim(): void {
    // A closing handle's writes are cancelled later than they are counted off: not for others to overwrite.
    const done = this.#to?.destroyed ? lose : giveBack
    if (this.#to?.destroyed || this.#to?.writableLength === 0)
      for (const buffer of this.#held.splice(0)) done(buffer)
  }

  #dispose(): void {
    if (this.#current) giveBack(this.#current)
    this.#current = undefined
    this.#dropping = true
    for (const buffer of this.#held.splice(0)) lose(buffer)
  }
}

const taps = new WeakMap<Socket, Tap>()

/** The socket's tap, if it was made with one. */
export function tapOf(socket: Socket): Tap | undefined {
  return taps.get(socket)
}

/**
 * Gives an accepted, unread socket a tap. A server can't be told to make its sockets with `onread`, so the handle moves
 * to a socket that has it: the option `handle` is as old as net, but undocumented. Without it the socket stays as it
 * is, and is relayed by 'data' events.
 */
export function withTap(accepted: Socket): Socket {
  const shell = accepted as Socket & { _handle?: unknown }
  const handle = shell._handle
  if (!handle || accepted.readableLength > 0) return accepted
  const tap = new Tap()
  const undocumented: object = { handle, pauseOnCreate: true }
  const socket = new Socket({ ...undocumented, allowHalfOpen: true, onread: tap.onread })
  shell._handle = null
  // The server counts its connections by these.
  accepted.destroy()
  tap.fit(socket)
  return socket
}
