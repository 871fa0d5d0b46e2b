import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { startMember } from './members.ts'
import type { TorNetworkAccess } from './network.ts'
import { freePorts } from './ports.ts'

/** A client of its own, which has never heard of any onion. */
export interface Visitor extends AsyncDisposable {
  /** Its SocksPort on 127.0.0.1. */
  readonly socksPort: number
}

const name = 'visitor'

/**
 * Starts a visitor, in about 3 s. The network's own client remembers for minutes which introductions led nowhere, and so
 * says nothing of an onion that has just come back.
 *
 * @param folder its own; made if missing
 * @throws PosternError as `startTorNetwork`
 */
export async function startVisitor(network: TorNetworkAccess, folder: string): Promise<Visitor> {
  await mkdir(join(folder, name), { recursive: true, mode: 0o700 })
  const [socksPort] = (await freePorts(1)) as [number]
  const members = await startMember(network.options, folder, name, { SocksPort: `127.0.0.1:${socksPort}` })
  return { socksPort, [Symbol.asyncDispose]: () => members.stop() }
}
