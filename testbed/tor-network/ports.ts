import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/** Below what Linux gives to connections that go out (ip_local_port_range): none of those takes a port before its user does. */
const FIRST = 12_000
const END = 32_000
const TRIES = 100

/**
 * Free TCP ports of an address of this machine, drawn at random. All are held open at the same time before any is
 * released, so no port comes twice. Another process may still take one in between, and draws one of 20,000.
 */
export async function freePorts(count: number, address = '127.0.0.1'): Promise<number[]> {
  const servers = new Map<number, Server>()
  try {
    for (let tries = 0; servers.size < count; tries++) {
      const port = randomInt(FIRST, END)
      const server = createServer().listen(port, address)
      try {
        await once(server, 'listening')
        servers.set(port, server)
      } catch (error) {
        if (tries > TRIES + count) throw error
      }
    }
    return [...servers.keys()]
  } finally {
    await Promise.all([...servers.values()].map((server) => new Promise((done) => server.close(done))))
  }
}
