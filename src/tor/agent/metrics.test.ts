import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OnionState, TorReport } from '../contract.ts'
import { agentMetrics, type OnionSources } from './metrics.ts'

const onion = (state: OnionState['state']): OnionState => ({
  name: state,
  address: state,
  state,
  uploadsAsked: 0,
  uploadsAcknowledged: 0,
  connections: 0,
})
const SILENT: OnionSources = {
  addresses: () => false,
  traffic: () => ({ bytesIn: 0, bytesOut: 0 }),
  tor: {
    refresh: async () => {},
    figures: () => ({ rejected: new Map(), rendezvousErrors: new Map() }),
    errors: { control: 0, metrics: 0 },
  },
}
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
    bridges: (['healthy', 'unknown', 'dead'] as const).map((state, index) => ({
      fingerprint: String(index).repeat(40),
      state,
      since: 0,
    })),
  }
  const metrics = agentMetrics(() => report, SILENT)
  const ours = async (): Promise<string[]> =>
    (await metrics.metrics())
      .split('\n')
      .filter((line) => line.startsWith('tor_agent_') && !/^tor_agent_(onion|tor_metrics)_/.test(line))
  assert.deepEqual(await ours(), [
    'tor_agent_bootstrapped 0',
    'tor_agent_onions_published 2',
    'tor_agent_onions_wanted 3',
    'tor_agent_tor_starts 2',
    'tor_agent_target_reachable{proxy="web",target="a"} 1',
    'tor_agent_target_reachable{proxy="web",target="b"} 0',
    `tor_agent_bridge_state{fingerprint="${'0'.repeat(40)}"} 1`,
    `tor_agent_bridge_state{fingerprint="${'1'.repeat(40)}"} 0`,
    `tor_agent_bridge_state{fingerprint="${'2'.repeat(40)}"} -1`,
  ])
  report.tor.bootstrapped = true
  report.targets = []
  delete report.bridges
  assert.deepEqual((await ours()).slice(-1), ['tor_agent_tor_starts 2'])
  assert.equal((await ours())[0], 'tor_agent_bootstrapped 1')
})

test('onions of others are told by their namespace, once something is known of them', async () => {
  const seen = { namespace: 'shop', address: 'a', failures: 0 }
  const report: Omit<TorReport, 'revision'> = {
    version: 1,
    applied: '',
    tor: { running: true, bootstrapped: true, progress: 100, starts: 1 },
    onions: [],
    targets: [],
    watched: [
      { ...seen, name: 'well', reachable: true, latencyMs: 1_500 },
      { ...seen, name: 'ill', reachable: false, failures: 2 },
      { ...seen, name: 'new' },
    ],
  }
  const lines = (await agentMetrics(() => report, SILENT).metrics()).split('\n')
  assert.deepEqual(
    lines.filter((line) => line.includes('onion_namespace=')),
    [
      'tor_agent_onion_reachable{onion_namespace="shop",onion="well"} 1',
      'tor_agent_onion_reachable{onion_namespace="shop",onion="ill"} 0',
      'tor_agent_onion_latency_seconds{onion_namespace="shop",onion="well"} 1.5',
    ],
  )
})

test('the series of an onion, by its name', async () => {
  const report: Omit<TorReport, 'revision'> = {
    version: 1,
    applied: '',
    tor: { running: true, bootstrapped: true, progress: 100, starts: 1 },
    onions: [
      {
        ...onion('published'),
        uploadsAsked: 16,
        uploadsAcknowledged: 15,
        lastUpload: Date.now() - 60_000,
        connections: 3,
      },
      onion('waiting'),
    ],
    targets: [],
  }
  let addresses = false
  let asked = 0
  const metrics = agentMetrics(() => report, {
    addresses: () => addresses,
    traffic: (address) => ({ bytesIn: address === 'published' ? 7 : 0, bytesOut: 9 }),
    tor: {
      refresh: async () => {
        asked += 1
      },
      figures: (address) =>
        address === 'published'
          ? {
              introCircuits: 3,
              powEffort: 12,
              powQueue: 1,
              rendezvous: 5,
              rejected: new Map([
                ['replay', 2],
                ['subcredential', 0],
              ]),
              rendezvousErrors: new Map([['retry', 4]]),
            }
          : { introCircuits: 0, rejected: new Map(), rendezvousErrors: new Map() },
      errors: { control: 0, metrics: 6 },
    },
  })
  const ours = async (): Promise<string[]> =>
    (await metrics.metrics()).split('\n').filter((line) => /^tor_agent_(onion|tor_metrics)_/.test(line))
  const lines = await ours()
  assert.equal(asked, 1)
  const [age, ...rest] = lines
  assert.match(age!, /^tor_agent_onion_descriptor_age_seconds\{onion="published"\} 6\d(\.\d+)?$/)
  assert.deepEqual(rest, [
    'tor_agent_onion_uploads_asked_total{onion="published"} 16',
    'tor_agent_onion_uploads_asked_total{onion="waiting"} 0',
    'tor_agent_onion_uploads_acknowledged_total{onion="published"} 15',
    'tor_agent_onion_uploads_acknowledged_total{onion="waiting"} 0',
    'tor_agent_onion_intro_circuits{onion="published"} 3',
    'tor_agent_onion_streams{onion="published"} 3',
    'tor_agent_onion_streams{onion="waiting"} 0',
    'tor_agent_onion_bytes_total{onion="published",direction="in"} 7',
    'tor_agent_onion_bytes_total{onion="published",direction="out"} 9',
    'tor_agent_onion_bytes_total{onion="waiting",direction="in"} 0',
    'tor_agent_onion_bytes_total{onion="waiting",direction="out"} 9',
    'tor_agent_onion_rejected_introductions_total{onion="published",reason="replay"} 2',
    'tor_agent_onion_rejected_introductions_total{onion="published",reason="subcredential"} 0',
    'tor_agent_onion_pow_effort{onion="published"} 12',
    'tor_agent_onion_pow_queue{onion="published"} 1',
    'tor_agent_onion_rendezvous_total{onion="published"} 5',
    'tor_agent_onion_rendezvous_errors_total{onion="published",reason="retry"} 4',
    'tor_agent_tor_metrics_errors_total{source="control"} 0',
    'tor_agent_tor_metrics_errors_total{source="metrics"} 6',
  ])
  addresses = true
  const open = (await ours()).filter((line) => line.startsWith('tor_agent_onion_'))
  assert.equal(open.length, lines.length - 2)
  for (const line of open) assert.match(line, /\{onion="(\w+)",address="\1\.onion"[,}]/)
  for (const { name, labelNames } of metrics.series) {
    const line = lines.find((one) => one.startsWith(`${name}{`))
    if (line === undefined) continue
    const names = [...line.matchAll(/[{,](\w+)=/g)].map(([, label]) => label)
    assert.deepEqual(names, labelNames, name)
  }
})
