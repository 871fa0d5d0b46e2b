import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { type Bridge, startBridge } from '../../testbed/tor-network/bridge.ts'
import type { TorNetworkAccess } from '../../testbed/tor-network/network.ts'
import { startVisitor } from '../../testbed/tor-network/visitor.ts'
import { visitUntil } from './visit.ts'

/** Why tests with bridges are left out; false where they can run. */
export const skip: string | false = existsSync('/usr/bin/obfs4proxy')
  ? false
  : 'no transport: apt-get install obfs4proxy'

export interface BridgeStage {
  /** Its own; gone at the end. */
  folder: string
  /** Starts one, which ends with the tests of the file. */
  bridge(name: string): Promise<Bridge>
  /** Somebody who comes for the first time reaches a page. */
  visitedAnew(host: string, expected: string): Promise<void>
}

/** Bridges of a network, for the tests of one file: call it at the file's top. */
export function bridgeStage(network: TorNetworkAccess): BridgeStage {
  const folder = mkdtempSync(join(tmpdir(), 'tbr-'))
  const started: Bridge[] = []
  let visitors = 0
  after(async () => {
    await Promise.all(started.map((bridge) => bridge.stop()))
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    folder,
    async bridge(name) {
      const one = await startBridge(network, join(folder, name))
      started.push(one)
      return one
    },
    async visitedAnew(host, expected) {
      await using visitor = await startVisitor(network, join(folder, `visitor-${visitors++}`))
      await visitUntil(visitor.socksPort, host, expected)
    },
  }
}
