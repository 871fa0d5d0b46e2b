import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { SocketAddress } from './dial.ts'

/** Waits until the condition holds; after the limit it fails and says what it saw last. */
export async function until(what: string, holds: () => boolean, saw?: () => unknown): Promise<void> {
  const deadline = performance.now() + 10_000
  while (!holds()) {
    if (performance.now() > deadline)
      throw new Error(`waited in vain for: ${what}; saw ${JSON.stringify(saw?.())}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

export function tempFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'relay-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A server on loopback, or on a path, whose connections end with the test. */
export async function serve(
  t: TestContext,
  onSocket: (socket: Socket) => void,
  path?: string,
): Promise<Backend> {
  const sockets: Socket[] = []
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    onSocket(socket)
  })
  await new Promise<void>((resolve) =>
    path ? server.listen(path, resolve) : server.listen(0, '127.0.0.1', resolve),
  )
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { server, sockets, host: '127.0.0.1', port: path ? 0 : (server.address() as AddressInfo).port }
}

export interface Backend {
  server: Server
  sockets: Socket[]
  host: string
  port: number
}

/** A client that notes all that happens to it. */
export interface Client {
  socket: Socket
  /** What came so far, as latin1. */
  text(): string
  ended: boolean
  closed: boolean
  error: NodeJS.ErrnoException | undefined
}

export function dialIn(t: TestContext, address: SocketAddress): Client {
  const socket = connect({ ...address, allowHalfOpen: true })
  t.after(() => socket.destroy())
  return observe(socket)
}

export function observe(socket: Socket): Client {
  let text = ''
  const client: Client = { socket, text: () => text, ended: false, closed: false, error: undefined }
  socket.on('data', (chunk) => (text += chunk.toString('latin1')))
  socket.on('end', () => (client.ended = true))
  socket.on('close', () => (client.closed = true))
  socket.on('error', (error) => (client.error = error))
  return client
}
