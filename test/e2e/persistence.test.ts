import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { POD } from '../../src/cluster/kinds.ts'
import { sharedTorNetwork } from '../../testbed/tor-network/shared.ts'
import { backend, document, onionService, startUp, type Up, webServer } from './up.ts'
import { visitUntil } from './visit.ts'

const network = await sharedTorNetwork()
const MAIN = resolve(import.meta.dirname, '../../src/cli/main.ts')

/** Fingerprints of the guards that a tor has used, in its order, from its state file (guard-spec, "Guard"). */
function guards(state: string): string[] {
  const lines = existsSync(state) ? readFileSync(state, 'utf8').split('\n') : []
  return lines
    .flatMap((line) => {
      const [, fingerprint] = /^Guard .*\brsa_id=([0-9A-F]{40})\b/.exec(line) ?? []
      const [, order] = /\bconfirmed_idx=(\d+)\b/.exec(line) ?? []
      return fingerprint === undefined || order === undefined ? [] : [{ fingerprint, order: Number(order) }]
    })
    .sort((a, b) => a.order - b.order)
    .map(({ fingerprint }) => fingerprint)
}

/** State file of the tor of the daemon's pod, wherever its volumes are. */
function stateOf(up: Up): string {
  const folder = join(up.state, 'p')
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('/state'),
  )
  return join(folder, found[0] ?? 'none')
}

test('a new pod goes in by the guards of the one before', async () => {
  using server = await webServer('same guards')
  await using up = startUp({
    'tor.yaml': document({
      apiVersion: 'tor.fr0st.dev/v1alpha1',
      kind: 'TorDaemon',
      metadata: { name: 'tor', namespace: 'default' },
      spec: { options: network.options, persistence: {} },
    }),
    'web.yaml': `${onionService('web')}---\n${backend('web', server.port)}`,
  })
  const hostname = await up.published('web')
  const kept = join(up.state, 'claims', 'default', 'tor-state', 'state')
  const pod = up.list(POD).find(({ metadata }) => metadata.name.startsWith('tor-'))!
  await promisify(execFile)(process.execPath, [MAIN, 'delete', 'pod', pod.metadata.name, '--state', up.state])
  await up.until('another pod', () => {
    const now = up.get(POD, pod.metadata.name)
    return now !== undefined && now.metadata.uid !== pod.metadata.uid
  })
  // tor writes its state when it ends, and the agent keeps it then.
  const before = await up.until('the guards to be kept', () => {
    const found = guards(kept)
    return found.length > 0 && found
  })
  await up.until('the new pod to have a tor with guards', () => guards(stateOf(up)).length > 0)
  assert.deepEqual(guards(stateOf(up)).slice(0, before.length), before)
  await up.published('web')
  await visitUntil(network.socksPort, hostname, 'same guards')
})
