import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { parseAllDocuments } from 'yaml'
import { ROWS } from '../../scripts/generate/panels.ts'
import type { Exposition } from '../../src/agent/exposition.ts'
import { OperatorMetrics } from '../../src/controller/metrics.ts'
import type { WorkObserver } from '../../src/controller/queue.ts'
import { agentMetrics } from '../../src/tor/agent/metrics.ts'
import { REPORT_VERSION } from '../../src/tor/contract.ts'

/** Series that there are, and series that rules and panels ask for. */

const MONITORING = join(import.meta.dirname, '../../deploy/components/prometheus/monitoring.yaml')

/** Of an agent that has something to say of everything; label values are as awkward as names can be. */
export function agentExposition(): Exposition {
  return agentMetrics(
    () => ({
      version: REPORT_VERSION,
      applied: '',
      tor: { running: true, bootstrapped: true, progress: 100, starts: 2 },
      onions: [
        {
          name: 'site',
          address: 'a'.repeat(56),
          state: 'published',
          uploadsAsked: 16,
          uploadsAcknowledged: 15,
          lastUpload: Date.now() - 60_000,
          connections: 3,
        },
      ],
      targets: [{ proxy: 'irc', target: 'a "b" \\ c', reachable: true, listening: true }],
      bridges: [
        { fingerprint: 'A'.repeat(40), state: 'healthy', since: 0 },
        { fingerprint: 'B'.repeat(40), state: 'dead', since: 0, reason: 'Refused' },
      ],
    }),
    {
      addresses: () => false,
      traffic: () => ({ bytesIn: 512, bytesOut: 4096 }),
      tor: {
        refresh: async () => {},
        figures: () => ({
          introCircuits: 3,
          powEffort: 0,
          powQueue: 0,
          rendezvous: 7,
          rejected: new Map([['replay', 1]]),
          rendezvousErrors: new Map([['rp_conn_failure', 0]]),
        }),
        errors: { control: 0, metrics: 0 },
      },
    },
  )
}

/** Of an operator that took a turn of each kind. */
export function operatorRegistry(): Registry {
  const registry = new Registry()
  const metrics = new OperatorMetrics({ registry, version: '0.0.0' })
  const controller = metrics.controller('tor') as Required<WorkObserver>
  controller.opened(4)
  for (const result of ['success', 'requeue_after', 'error'] as const) {
    controller.queued('a')
    controller.started('a')
    controller.finished('a', result)
  }
  controller.wrote(3)
  metrics.request('GET', '200', 0.01)
  metrics.leads('postern-operator', true)
  metrics.watchRestarted('pods')
  metrics.relisted('pods')
  return registry
}

/** Names of all series that an agent and an operator serve, but for what Node.js says of itself. */
export function served(): Set<string> {
  const names = [
    ...agentExposition().series.map(({ name }) => name),
    ...operatorRegistry()
      .getMetricsAsArray()
      .map(({ name }) => name),
  ]
  return new Set(names.filter((name) => !name.startsWith('nodejs_')))
}

/** Names of series in an expression or a text, a histogram's by its own name. */
export function seriesIn(text: string): string[] {
  const names = text.match(/\b(?:tor_agent|postern|process)_[a-z_]+\b/g) ?? []
  return [...new Set(names.map((name) => name.replace(/_bucket$/, '')))]
}

/** Every query of the dashboard, as Prometheus gets it while everything is chosen. */
export function panelQueries(): { panel: string; expression: string }[] {
  return ROWS.flatMap(({ panels }) =>
    panels.flatMap(({ title, queries }) =>
      queries.map(({ expression }) => ({
        panel: title,
        expression: expression
          .replaceAll('$__rate_interval', '5m')
          .replaceAll('$namespace', '.*')
          .replaceAll('$onion', '.*'),
      })),
    ),
  )
}

export interface Rules {
  groups: { rules: { alert: string; annotations: { runbook_url: string } }[] }[]
}

/** The rules that are installed, as a file of Prometheus has them. */
export function shippedRules(): Rules {
  const text = readFileSync(MONITORING, 'utf8')
  const objects = parseAllDocuments(text).map((one) => one.toJS() as { kind: string; spec: Rules })
  return objects.find(({ kind }) => kind === 'PrometheusRule')!.spec
}
