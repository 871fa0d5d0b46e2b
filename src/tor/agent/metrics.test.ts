import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OnionState, TorReport } from '../contract.ts'
import { agentMetrics } from './metrics.ts'

const onion = (state: OnionState['state']): OnionState => ({
  name: state,
  address: state,
  state,
  uploadsAsked: 0,
  uploadsAcknowledged: 0,
  connections: 0,
})
const target = { proxy: 'web', listening: true }

test('the series follow the report', async () => {
  const report: Omit<TorReport, 'revision'> = {
    version: 1,
    applied: '',
    tor: { running: true, bootstrapped: false, progress: 50, starts: 2 },
    onions: [onion('published'), onion('added'), onion('published')],
    targets: [
      { ...target, target: 'a', reachable: true },
      { ...target, target: 'b', reachable: false },
      { ...target, target: 'not-probed-yet' },
    ],
  }
  const metrics = agentMetrics(() => report)
  const ours = async (): Promise<string[]> =>
    (await metrics.metrics()).split('\n').filter((line) => line.startsWith('tor_agent_'))
  assert.deepEqual(await ours(), [
    'tor_agent_bootstrapped 0',
    'tor_agent_onions_published 2',
    'tor_agent_onions_wanted 3',
    'tor_agent_tor_starts 2',
    'tor_agent_target_reachable{proxy="web",target="a"} 1',
    'tor_agent_target_reachable{proxy="web",target="b"} 0',
  ])
  report.tor.bootstrapped = true
  report.targets = []
  assert.deepEqual((await ours()).slice(-1), ['tor_agent_tor_starts 2'])
  assert.equal((await ours())[0], 'tor_agent_bootstrapped 1')
})
