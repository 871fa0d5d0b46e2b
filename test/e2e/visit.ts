import type { Socket } from 'node:net'
import { messageOf } from '../../src/core/errors.ts'
import { socks5Connect } from '../../src/relay/socks5.ts'

/** A visitor of onions: streams and pages through the private network's client. */

let visits = 0

/** Opens a stream to an onion on a circuit of its own. */
export function stream(socksPort: number, host: string, port: number, timeoutMs = 60_000): Promise<Socket> {
  return socks5Connect({
    proxy: { host: '127.0.0.1', port: socksPort },
    host,
    port,
    username: `visit-${process.pid}-${++visits}`,
    password: 'x',
    timeoutMs,
  })
}

/** The body of a page, by HTTP/1.1 on a stream that the server closes. */
export async function page(socksPort: number, host: string, timeoutMs = 60_000): Promise<string> {
  return body(await stream(socksPort, host, 80, timeoutMs), host)
}

/** Asks for `/` on an open stream, and reads as much as the page says that it has, or to the stream's end. */
export function body(socket: Socket, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    socket.setTimeout(60_000, () => socket.destroy(new Error('the page took longer than a minute')))
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      const length = end < 0 ? undefined : /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, end + 2))?.[1]
      if (length === undefined || text.length < end + 4 + Number(length)) return
      socket.destroy()
      resolve(text.slice(end + 4))
    })
    socket.on('error', reject)
    socket.on('end', () => {
      socket.destroy()
      const end = text.indexOf('\r\n\r\n')
      if (end < 0) reject(new Error(`no HTTP answer: ${text.slice(0, 200)}`))
      else resolve(text.slice(end + 4))
    })
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    socket.resume()
  })
}

/**
 * Visits until the page says what is expected. The first visit after an upload may come too early for a client
 * whose view of the directories differs.
 */
export async function visitUntil(
  socksPort: number,
  host: string,
  expected: string,
  milliseconds = 90_000,
): Promise<void> {
  const deadline = Date.now() + milliseconds
  for (;;) {
    let seen: string
    try {
      seen = await page(socksPort, host)
      if (seen.includes(expected)) return
    } catch (error) {
      seen = messageOf(error)
    }
    if (Date.now() > deadline) throw new Error(`visited ${host} for ${milliseconds} ms; saw: ${seen}`)
    await new Promise((done) => setTimeout(done, 300))
  }
}

/** How often an impatient visitor tries anew, without waiting for the try before. */
const RELOAD_MS = 500

/** The first page that comes, for a visitor who reloads it again and again: each try on a circuit of its own. */
export async function reached(socksPort: number, host: string, text: string, limit = 120_000): Promise<void> {
  const end = performance.now() + limit
  let found = false
  let last = 'nothing'
  while (!found) {
    void page(socksPort, host).then(
      (seen) => {
        if (seen.includes(text)) found = true
      },
      (error: unknown) => {
        last = messageOf(error)
      },
    )
    const next = performance.now() + RELOAD_MS
    while (!found && performance.now() < next) await new Promise((done) => setTimeout(done, 10))
    if (performance.now() > end) throw new Error(`reloaded ${host} for ${limit} ms; saw ${last}`)
  }
}
