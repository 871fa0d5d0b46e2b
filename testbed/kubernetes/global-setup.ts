import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf, messageOf } from '../../src/core/errors.ts'
import { LazyCluster } from './lazy-cluster.ts'

// One cluster for all test files of a run. Few runs need one, and only this process can hold it: so the test files ask for it
// on a unix socket, and the first that does starts it.

const cluster = new LazyCluster()
let folder: string | undefined
let server: Server | undefined

export async function globalSetup(): Promise<void> {
  if (process.env.POSTERN_TEST_KUBERNETES) return
  folder = await mkdtemp(join(tmpdir(), 'ptk-socket-'))
  const path = join(folder, 'socket')
  server = createServer((request, response) => {
    if (request.url === '/control-plane') void answer(response, cluster.access())
    else if (request.url === '/node') void answer(response, cluster.accessWithNode())
    else response.writeHead(404).end()
  })
  // A first build takes many minutes.
  server.requestTimeout = 0
  server.listen(path)
  await once(server, 'listening')
  process.env.POSTERN_TEST_KUBERNETES = path
}

export async function globalTeardown(): Promise<void> {
  if (folder === undefined) return
  delete process.env.POSTERN_TEST_KUBERNETES
  await cluster.stop()
  server?.closeAllConnections()
  server?.close()
  await rm(folder, { recursive: true, force: true })
}

async function answer(response: ServerResponse, asked: Promise<unknown>): Promise<void> {
  try {
    response.end(JSON.stringify(await asked))
  } catch (error) {
    response.writeHead(500).end(JSON.stringify({ code: codeOf(error), message: messageOf(error) }))
  }
}
