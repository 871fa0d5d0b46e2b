import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/**
 * Free TCP ports of an address of this machine. All are held open at the same time before any is released, so no port comes twice.
 * Another process may still take one in between: the caller must be ready to start again with new ones.
 */
export async function freePorts(count: number, address = '127.0.0.1'): Promise<number[]> {
  const servers: Server[] = []
  try {
    for (let i = 0; i < count; i++) {
      const server = createServer()
      servers.push(server)
      server.listen(0, address)
      await once(server, 'listening')
    }
    return servers.map((server) => {
      const address = server.address()
      if (address === null || typeof address === 'string') throw new Error('a TCP server has no port')
      return address.port
    })
  } finally {
    await Promise.all(servers.map((server) => new Promise((done) => server.close(done))))
  }
}
