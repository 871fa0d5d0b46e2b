import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'
import { codeOf } from '../../core/errors.ts'

export interface Site {
  port: number
  close(): Promise<void>
}

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
}

/** Serves a folder on 127.0.0.1: at the port that is wished for, or at a free one where that is taken. */
export async function startSite(folder: string, wished: number): Promise<Site> {
  const server = createServer((request, response) => {
    const answer = (status: number, type: string, body: Buffer | string): void => {
      response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) })
      response.end(request.method === 'HEAD' ? undefined : body)
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      answer(405, 'text/plain', 'Only GET and HEAD.\n')
      return
    }
    const path = fileFor(request.url ?? '/')
    if (path === undefined) {
      answer(404, 'text/plain', 'There is no such page.\n')
      return
    }
    readFile(join(folder, path)).then(
      (body) => answer(200, TYPES[extname(path)] ?? 'application/octet-stream', body),
      () => answer(404, 'text/plain', 'There is no such page.\n'),
    )
  })
  try {
    await listen(server, wished)
  } catch (error) {
    if (codeOf(error) !== 'EADDRINUSE') throw error
    await listen(server, 0)
  }
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** A file of the folder for a URL's path, never outside of it. */
function fileFor(url: string): string | undefined {
  try {
    const path = normalize(decodeURIComponent(new URL(url, 'http://site').pathname))
    if (path.includes('\0') || path.split('/').includes('..')) return undefined
    return path.endsWith('/') ? `${path}index.html` : path
  } catch {
    return undefined
  }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve()
    })
  })
}
