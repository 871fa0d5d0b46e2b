import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, PosternError } from '../../src/core/errors.ts'
import { startMember } from './members.ts'
import type { TorNetworkAccess } from './network.ts'
import { freePorts } from './ports.ts'
import { bridgeOptions } from './torrc.ts'

/** A bridge that runs behind obfs4, until `stop`. */
export interface Bridge extends AsyncDisposable {
  /** 40 hexadecimal digits, upper case. */
  readonly fingerprint: string
  /** Where its obfs4 listens. */
  readonly port: number
  /** `obfs4 ADDRESS:PORT FINGERPRINT cert=… iat-mode=0`, as a torrc takes it behind `Bridge`. */
  readonly line: string
  /** It goes on accepting connections and never says a word. */
  freeze(): void
  /** The end of `freeze`. */
  thaw(): void
  /** It is gone, and its port refuses. */
  stop(): Promise<void>
  /** The same bridge again, on the same port, after `stop`. */
  start(): Promise<void>
}

const name = 'bridge'
const maxTries = 3

/**
 * Starts a bridge of a network that runs, with Debian's obfs4proxy, and resolves once it can build circuits: about 4 s.
 * It is in no consensus: only who has its line finds it. It dies with the caller, even by kill -9.
 *
 * @param folder its own; made if missing
 * @param address where it listens: of this machine, and reached by whoever uses it
 * @throws PosternError as {@link startTorNetwork}
 */
export async function startBridge(
  network: TorNetworkAccess,
  folder: string,
  address = '127.0.0.1',
): Promise<Bridge> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(network, folder, address)
    } catch (error) {
      if (codeOf(error) !== 'TorNetworkPortTaken' || attempt === maxTries) throw error
    }
  }
}

async function startOnce(network: TorNetworkAccess, folder: string, address: string): Promise<Bridge> {
  await rm(folder, { recursive: true, force: true })
  await mkdir(join(folder, name), { recursive: true, mode: 0o700 })
  const [orPort, port] = (await freePorts(2, address)) as [number, number]
  const options = bridgeOptions(name, address, orPort, port)
  let members = await startMember(network.options, folder, name, options)
  let stopped = false
  const signal = (which: NodeJS.Signals): void => {
    const pid = members.pid(name)
    // The transport first: it is what answers.
    if (pid !== undefined) for (const one of [...childrenOf(pid), pid]) process.kill(one, which)
  }
  const stop = async (): Promise<void> => {
    if (stopped) return
    stopped = true
    signal('SIGCONT')
    await members.stop()
  }
  try {
    const fingerprint = (await readFile(join(folder, name, 'fingerprint'), 'utf8')).trim().split(' ')[1]!
    const template = await readFile(join(folder, name, 'pt_state', 'obfs4_bridgeline.txt'), 'utf8')
    const secret = /cert=\S+ iat-mode=\d/.exec(template)?.[0]
    if (secret === undefined) {
      throw new PosternError('TorNetworkProcess', `obfs4proxy wrote no certificate into ${folder}`)
    }
    return {
      fingerprint,
      port,
      line: `obfs4 ${address}:${port} ${fingerprint} ${secret}`,
      freeze: () => signal('SIGSTOP'),
      thaw: () => signal('SIGCONT'),
      stop,
      start: async () => {
        members = await startMember(network.options, folder, name, options)
        stopped = false
      },
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => parentOf(pid) === parent)
}

function parentOf(pid: number): number | undefined {
  try {
    return Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  } catch {
    return undefined
  }
}
