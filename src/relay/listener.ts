import { createServer, type Server, type Socket } from 'node:net'
import { codeOf, messageOf, PosternError } from '../core/errors.ts'
import { type Dial, formatAddress, KEEP_ALIVE_MS, type SocketAddress } from './dial.ts'
import { type Splice, type SpliceOptions, splice } from './splice.ts'
import { withTap } from './tap.ts'
import { freeUnixPath } from './unix-path.ts'

/** What a relay may say; a pino logger fits. */
export interface RelayLog {
  debug(fields: object, message: string): void
  warn(fields: object, message: string): void
}

export interface RelayOptions extends Omit<SpliceOptions, 'onClosed'> {
  /** Port 0 takes a free one. A unix socket's folder must exist and should be 0700. */
  address: SocketAddress
  dial: Dial
  /** Connections at a time, dialling ones included; any more are refused. Default 4096. */
  maxConnections?: number
  /** A client could not be connected; it has been reset. Not called when `close` cut the attempt. */
  onDialError?(error: unknown): void
  /** A client has been connected. */
  onDialed?(): void
  log?: RelayLog
}

/** Live: read it whenever you like. Byte counts of running connections are added up at the time of reading. */
export interface RelayCounters {
  readonly accepted: number
  readonly active: number
  /** Over `maxConnections`. */
  readonly refused: number
  readonly dialErrors: number
  /** From clients. */
  readonly bytesIn: number
  /** To clients. */
  readonly bytesOut: number
}

export interface RelayListener {
  /** Where it listens, with the real port. */
  readonly address: SocketAddress
  readonly counters: RelayCounters
  /** New connections use this dialer; the ones that run or are being dialled go on. */
  setDial(dial: Dial): void
  /**
   * Accepts no more, gives running connections `graceMs` (default 0) to end by themselves, then cuts them. Resolves
   * with `closed`. May be called again, with less grace.
   */
  close(options?: { graceMs?: number }): Promise<void>
  /** Resolves when it has been closed and its last connection has ended. */
  readonly closed: Promise<void>
}

interface Connection {
  client: Socket
  abort: AbortController
  splice?: Splice
}

/**
 * Accepts connections, dials one for each, and joins the two.
 *
 * @throws PosternError `ListenFailed` when the address can't be listened on
 */
export async function listen(options: RelayOptions): Promise<RelayListener> {
  const {
    address,
    dial: firstDial,
    maxConnections = 4096,
    onDialError,
    onDialed,
    log,
    ...spliceOptions
  } = options
  let dial = firstDial
  const connections = new Set<Connection>()
  const totals = { accepted: 0, refused: 0, dialErrors: 0, bytesIn: 0, bytesOut: 0 }
  const server = createServer({
    allowHalfOpen: true,
    pauseOnConnect: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
  })
  let stopped = false
  let serverClosed = false
  const { promise: closed, resolve: resolveClosed } = Promise.withResolvers<void>()

  function forget(connection: Connection): void {
    connections.delete(connection)
    if (serverClosed && connections.size === 0) resolveClosed()
  }

  async function serve(accepted: Socket): Promise<void> {
    const client = withTap(accepted).on('error', ignore)
    // After close() has begun the kernel's queue may still hand over a connection.
    if (stopped || connections.size >= maxConnections) {
      totals.refused += 1
      reset(client)
      return
    }
    totals.accepted += 1
    const connection: Connection = { client, abort: new AbortController() }
    connections.add(connection)
    let upstream: Socket
    try {
      upstream = await dial(client, connection.abort.signal)
    } catch (error) {
      forget(connection)
      reset(client)
      if (connection.abort.signal.aborted) return
      totals.dialErrors += 1
      log?.debug({ error: messageOf(error), code: codeOf(error) }, 'could not connect a client')
      onDialError?.(error)
      return
    }
    if (connection.abort.signal.aborted) {
      upstream.on('error', ignore).destroy()
      forget(connection)
      return
    }
    connection.splice = splice(client, upstream, {
      ...spliceOptions,
      onClosed: ({ bytesIn, bytesOut }) => {
        totals.bytesIn += bytesIn
        totals.bytesOut += bytesOut
        forget(connection)
      },
    })
    onDialed?.()
  }

  function cut(): void {
    for (const connection of connections) {
      if (connection.splice) connection.splice.destroy()
      else {
        connection.client.destroy()
        connection.abort.abort(
          new PosternError('RelayClosed', 'the relay was closed while it connected a client'),
        )
      }
    }
  }

  function sum(key: 'bytesIn' | 'bytesOut'): number {
    let bytes = totals[key]
    for (const connection of connections) bytes += connection.splice?.[key] ?? 0
    return bytes
  }

  if ('path' in address) await freeUnixPath(address.path)
  await start(server, address)
  server.on('connection', serve)
  // For example EMFILE at accept: it passes, and the listener goes on.
  server.on('error', (error) =>
    log?.warn({ error: error.message, code: codeOf(error) }, 'could not accept a connection'),
  )
  const bound = server.address()

  return {
    address: typeof bound === 'object' && bound ? { host: bound.address, port: bound.port } : address,
    counters: {
      get accepted() {
        return totals.accepted
      },
      get active() {
        return connections.size
      },
      get refused() {
        return totals.refused
      },
      get dialErrors() {
        return totals.dialErrors
      },
      get bytesIn() {
        return sum('bytesIn')
      },
      get bytesOut() {
        return sum('bytesOut')
      },
    },
    setDial(next) {
      dial = next
    },
    async close({ graceMs = 0 } = {}) {
      if (!stopped) {
        stopped = true
        server.close(() => {
          serverClosed = true
          if (connections.size === 0) resolveClosed()
        })
      }
      if (graceMs <= 0) cut()
      else {
        const timer = setTimeout(cut, graceMs)
        void closed.then(() => clearTimeout(timer))
      }
      await closed
    },
    closed,
  }
}

function start(server: Server, address: SocketAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(listenFailed(address, cause)))
    server.listen(address, () => {
      server.removeAllListeners('error')
      resolve()
    })
  })
}

const REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'something else listens there; stop it or choose another port',
  EADDRNOTAVAIL: 'this machine does not have that address; choose one that it has',
  EACCES: 'this user may not; choose a port from 1024 on, or a folder that it may write to',
}

function listenFailed(address: SocketAddress, cause: unknown): PosternError {
  const code = codeOf(cause) ?? messageOf(cause)
  const remedy = REMEDIES[code] ?? 'check the address'
  return new PosternError('ListenFailed', `cannot listen on ${formatAddress(address)} (${code}): ${remedy}`, {
    cause,
  })
}

/** Tells a client that there was no connection, rather than one that ended without an answer. */
function reset(client: Socket): void {
  if (client.destroyed) return
  // Only TCP has a reset; a unix socket has no remote address.
  if (client.remoteAddress === undefined) client.destroy()
  else client.resetAndDestroy()
}

function ignore(): void {}
