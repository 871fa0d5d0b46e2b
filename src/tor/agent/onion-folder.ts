import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { OnionPlan } from '../contract.ts'
import type { OnionPortMapping } from '../control/add-onion.ts'
import { publicLine } from '../onion/client-key.ts'
import { writeOnionKeyFiles } from '../onion/files.ts'
import { deriveOnionKey } from '../onion/key.ts'

/** An onion as tor's configuration has it: a folder with its keys, and options that belong to it. */

/** @param secret 64 bytes */
export async function writeOnionFolder(folder: string, onion: OnionPlan, secret: Uint8Array): Promise<void> {
  await rm(folder, { recursive: true, force: true })
  // tor takes a folder that is its user's own and nobody else's.
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const files = Object.entries(writeOnionKeyFiles(deriveOnionKey(secret)))
  for (const [name, content] of files) await writeFile(join(folder, name), content, { mode: 0o600 })
  if (onion.clients === undefined) return
  const clients = join(folder, 'authorized_clients')
  await mkdir(clients, { mode: 0o700 })
  for (const [index, client] of onion.clients.entries()) {
    await writeFile(join(clients, `${index}.auth`), `${publicLine(client)}\n`, { mode: 0o600 })
  }
}

/** Options of one onion, in the order that tor asks for: each belongs to the HiddenServiceDir before it. */
export function folderSettings(
  folder: string,
  { pow, streams }: OnionPlan,
  ports: readonly OnionPortMapping[],
): [string, string][] {
  return [
    ['HiddenServiceDir', folder],
    ...ports.map(({ virtualPort, target }): [string, string] => [
      'HiddenServicePort',
      `${virtualPort} ${target}`,
    ]),
    ['HiddenServiceExportCircuitID', 'haproxy'],
    ...(streams === undefined
      ? []
      : ([
          ['HiddenServiceMaxStreams', String(streams.max)],
          ['HiddenServiceMaxStreamsCloseCircuit', streams.closeCircuit ? '1' : '0'],
        ] as [string, string][])),
    ...(pow === undefined ? [] : ([['HiddenServicePoWDefensesEnabled', '1']] as [string, string][])),
    ...(pow?.queueRate === undefined
      ? []
      : ([['HiddenServicePoWQueueRate', String(pow.queueRate)]] as [string, string][])),
    ...(pow?.queueBurst === undefined
      ? []
      : ([['HiddenServicePoWQueueBurst', String(pow.queueBurst)]] as [string, string][])),
  ]
}
