import type { Socket } from 'node:net'
import { tapOf } from './tap.ts'
import { unwatch, watch } from './wheel.ts'

/** Whether a peer can go on reading after it has sent its end of file. A TCP peer can; tor can't, in neither role. */
export interface HalfClose {
  client: boolean
  upstream: boolean
}

export interface SpliceOptions {
  /** Default: both can. */
  halfClose?: HalfClose
  /**
   * Milliseconds. How long an end of file from the client is held back from an upstream without half-close,
   * counted from that end of file or the upstream's last byte, whichever is later. Also how long the last bytes of a
   * connection that was cut may stand still before they are given up. Default 30000.
   */
  halfCloseLimitMs?: number
  /**
   * Milliseconds. An end of file from the upstream is held back from a client without half-close while that client
   * still sends: it is passed on when the client's last byte is this long ago. Default 1000.
   */
  clientEndLimitMs?: number
  /** Milliseconds without a byte in either direction after which both are destroyed. Default: no limit. */
  idleTimeoutMs?: number
  /** Milliseconds. How long a peer may take to close its side after a connection was cut. Default 5000. */
  lingerMs?: number
  /** Called once, when both sockets are closed. */
  onClosed?(splice: Splice): void
}

export interface Splice {
  /** Bytes from client to upstream so far. */
  readonly bytesIn: number
  /** Bytes from upstream to client so far. */
  readonly bytesOut: number
  /** Destroys both sockets at once. */
  destroy(): void
}

const BOTH: HalfClose = { client: true, upstream: true }

/**
 * Joins two connected sockets, both ways, with back-pressure, until both are closed. Both must have been made with
 * `allowHalfOpen: true`; bytes that they already hold are passed on. The sockets belong to the splice from here on.
 *
 * What becomes of an end of file:
 * - Between peers that half-close (plain TCP) it is passed on as it is, and the other direction goes on without limit.
 * - From a peer that doesn't half-close it means that all is over: both sides are ended at once.
 * - Towards a peer that doesn't half-close it would cut the other direction short: tor answers it by closing the
 *   stream both ways (connection_edge_reached_eof in tor's connection_edge.c). So it is held back until the other
 *   direction has ended or has been quiet for the limit; then both are ended. Towards an upstream the limit is long
 *   (an answer may take its time after the request's end). Towards a client it is short: mostly the answer
 *   is complete and the far side waits for exactly this end (HTTP/1.0), only an upload under way is worth a delay.
 *
 * When one side fails or is closed for good, what was taken from it is still delivered to the other, which is then ended.
 */
export function splice(client: Socket, upstream: Socket, options: SpliceOptions = {}): Splice {
  const { halfClose = BOTH, idleTimeoutMs = 0, onClosed } = options
  const { halfCloseLimitMs = 30_000, clientEndLimitMs = 1_000, lingerMs = 5_000 } = options
  // A dialer has already read its own handshake from the socket: that is not the client's traffic.
  const clientBase = client.bytesRead - client.readableLength
  const upstreamBase = upstream.bytesRead - upstream.readableLength

  let clientEnded = false
  let upstreamEnded = false
  let clientEndedAt = 0
  /** All is over: nothing is taken any more, only what is on its way out is still delivered. */
  let over = false
  let overAt = 0
  let open = 2

  let movedUpAt = performance.now()
  let movedDownAt = movedUpAt
  let seenUp = -1
  let seenDown = -1

  const self: Splice & { tick(now: number): void } = {
    get bytesIn() {
      return client.bytesRead - clientBase
    },
    get bytesOut() {
      return upstream.bytesRead - upstreamBase
    },
    destroy() {
      client.destroy()
      upstream.destroy()
    },
    tick(now) {
      look(now)
      if (idleTimeoutMs > 0 && now - Math.max(movedUpAt, movedDownAt) >= idleTimeoutMs) return self.destroy()
      if (over) return linger(now)
      if (clientEnded && !halfClose.upstream && !upstreamEnded) {
        if (now - Math.max(movedDownAt, clientEndedAt) >= halfCloseLimitMs) finish()
      } else if (upstreamEnded && !halfClose.client && !clientEnded) {
        if (now - movedUpAt >= clientEndLimitMs) finish()
      }
    },
  }

  /** Notes when each direction last moved: a byte came in, or one that waited went out. */
  function look(now: number): void {
    const up = client.bytesRead - upstream.writableLength
    const down = upstream.bytesRead - client.writableLength
    if (up !== seenUp) movedUpAt = now
    if (down !== seenDown) movedDownAt = now
    seenUp = up
    seenDown = down
  }

  function linger(now: number): void {
    const waiting = (!client.destroyed && client.writableLength > 0) || upstreamWaits()
    if (waiting && now - Math.max(movedUpAt, movedDownAt, overAt) < halfCloseLimitMs) return
    if (waiting || now - overAt >= lingerMs) self.destroy()
  }

  function upstreamWaits(): boolean {
    return !upstream.destroyed && upstream.writableLength > 0
  }

  /**
   * Ends both, after what is queued for them. Their own bytes are read on and dropped until they close: closing a
   * socket with unread bytes sends a reset, and that would destroy the last bytes on their way to the peer.
   */
  function finish(): void {
    if (over) return
    over = true
    overAt = performance.now()
    tapOf(client)?.drop()
    tapOf(upstream)?.drop()
    end(client)
    end(upstream)
    client.resume()
    upstream.resume()
    watch(self)
  }

  function onClientEnd(): void {
    clientEnded = true
    clientEndedAt = performance.now()
    if (over) return
    if (!halfClose.client) finish()
    else if (upstreamEnded) endBoth()
    else if (halfClose.upstream) end(upstream)
  }

  function onUpstreamEnd(): void {
    upstreamEnded = true
    if (over) return
    if (!halfClose.upstream) finish()
    else if (clientEnded) endBoth()
    else if (halfClose.client) end(client)
    // Nothing to wait for when the client has been quiet for long already: a slow answer of HTTP/1.0 ends at once.
    else self.tick(performance.now())
  }

  /** The quiet end: both have sent all they had, and may take the time they need to read the rest. */
  function endBoth(): void {
    end(client)
    end(upstream)
  }

  function onClose(): void {
    open -= 1
    if (open === 0) {
      unwatch(self)
      onClosed?.(self)
    } else if (!clientEnded || !upstreamEnded) {
      finish()
    }
  }

  for (const socket of [client, upstream]) {
    socket.on('error', ignore)
    // A socket that closed before we came has said so already.
    if (socket.closed) process.nextTick(onClose)
    else socket.once('close', onClose)
  }
  join(client, upstream)
  join(upstream, client)
  if (client.readableEnded) onClientEnd()
  else client.once('end', onClientEnd)
  if (upstream.readableEnded) onUpstreamEnd()
  else upstream.once('end', onUpstreamEnd)
  if (idleTimeoutMs > 0 || !halfClose.client || !halfClose.upstream) watch(self)
  upstream.resume()
  client.resume()
  return self

  function join(from: Socket, to: Socket): void {
    const tap = tapOf(from)
    if (tap) {
      tap.pour(to)
      return
    }
    from.on('data', (chunk: Buffer) => {
      if (!over && !to.write(chunk)) from.pause()
    })
    to.on('drain', () => from.resume())
  }
}

/** Ends once: a second end() is harmless, but makes an error object that costs more than the end itself. */
function end(socket: Socket): void {
  if (!socket.writableEnded) socket.end()
}

/** Every error is followed by 'close', where it is dealt with; without a listener it would end the process. */
function ignore(): void {}
