import { writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { makeReportIdentity } from '../../src/controller/report-identity.ts'

/** Gives bridges away on this machine. */
export interface Distributor extends Disposable {
  /** Without a path: `https://localhost:PORT`. */
  url: string
  asked(): number
}

/**
 * Starts one, whose certificate every `postern up` is told to trust that is started after it.
 *
 * @param folder for the certificate
 * @param page what is answered, by path and query
 */
export async function startDistributor(folder: string, page: (path: string) => string): Promise<Distributor> {
  const identity = makeReportIdentity('localhost')
  const ca = join(folder, 'ca.pem')
  writeFileSync(ca, identity.certificate)
  process.env.NODE_EXTRA_CA_CERTS = ca
  let asked = 0
  const server = createServer(
    { cert: identity.certificate, key: identity.privateKey },
    (request, response) => {
      asked += 1
      response.end(page(request.url ?? '/'))
    },
  )
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    asked: () => asked,
    [Symbol.dispose]: () => void server.close(),
  }
}

/** A page with these bridges, as the Tor Project's distributor has it. */
export function bridgePage(...lines: string[]): string {
  return `<html><div id="bridgelines">${lines.join('<br/>\n')}</div></html>`
}
