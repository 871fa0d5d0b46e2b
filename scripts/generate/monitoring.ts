import { MANAGED_BY } from '../../src/tor/operator/names.ts'
import { type Install, meta, OPERATOR, SELECTOR } from './install.ts'

/** What the Prometheus operator reads. */

const MONITORING = 'monitoring.coreos.com/v1'

/** Parts of the monitors that only a chart sets. */
export interface MonitorValues {
  labels?: Record<string, unknown>
  interval: unknown
}

export function serviceMonitor(install: Install, { labels, interval }: MonitorValues): object {
  return {
    apiVersion: MONITORING,
    kind: 'ServiceMonitor',
    metadata: { ...meta(install, OPERATOR), labels: { ...install.labels, ...labels } },
    spec: {
      selector: { matchLabels: SELECTOR },
      endpoints: [{ port: 'metrics', path: '/metrics', interval }],
    },
  }
}

/** Every daemon's pod of every namespace, by the label that they all have. */
export function podMonitor(install: Install, { labels, interval }: MonitorValues): object {
  return {
    apiVersion: MONITORING,
    kind: 'PodMonitor',
    metadata: { ...meta(install, 'tor-operator'), labels: { ...install.labels, ...labels } },
    spec: {
      namespaceSelector: { any: true },
      selector: { matchLabels: MANAGED_BY },
      podMetricsEndpoints: [{ port: 'metrics', path: '/metrics', interval }],
    },
  }
}

export function prometheusRule(install: Install, labels?: Record<string, unknown>): object {
  return {
    apiVersion: MONITORING,
    kind: 'PrometheusRule',
    metadata: { ...meta(install, OPERATOR), labels: { ...install.labels, ...labels } },
    spec: { groups: [{ name: 'postern', rules: ALERTS.map(alert) }] },
  }
}

interface Alert {
  name: string
  expression: string
  /** How long it must hold. */
  time: string
  severity: 'critical' | 'warning'
  summary: string
  description: string
}

const ALERTS: Alert[] = [
  {
    name: 'PosternOperatorDown',
    expression: 'absent(up{job="postern-metrics"} == 1)',
    time: '10m',
    severity: 'critical',
    summary: 'No operator of Postern answers.',
    description:
      'What is published stays published, but nothing that is declared takes effect. See the pods of the Deployment postern-operator.',
  },
  {
    name: 'PosternNoLeader',
    expression: 'sum(postern_leader_election_master_status) == 0',
    time: '5m',
    severity: 'critical',
    summary: 'No operator of Postern leads.',
    description:
      'Nothing that is declared takes effect. `/readyz` and the logs of the pods of postern-operator say why the Lease cannot be had.',
  },
  {
    name: 'PosternReconcileErrors',
    expression: 'sum by (controller) (increase(postern_controller_reconcile_errors_total[15m])) > 10',
    time: '15m',
    severity: 'warning',
    summary: 'The operator of Postern fails again and again.',
    description:
      "The log of the leading pod of postern-operator has the errors. Users' mistakes are not among them.",
  },
  {
    name: 'TorDaemonNotBootstrapped',
    expression: 'tor_agent_bootstrapped == 0',
    time: '15m',
    severity: 'warning',
    summary: 'The tor of a namespace is not connected to the network.',
    description: 'Its onions cannot be reached. `kubectl describe tordaemon` in its namespace says why.',
  },
  {
    name: 'TorOnionsNotPublished',
    expression: 'tor_agent_onions_published < tor_agent_onions_wanted',
    time: '15m',
    severity: 'warning',
    summary: 'Onions of a namespace are not published.',
    description: '`kubectl get onionservices` in its namespace shows which, `kubectl describe` says why.',
  },
  {
    name: 'TorTargetUnreachable',
    expression: 'tor_agent_target_reachable == 0',
    time: '30m',
    severity: 'warning',
    summary: 'A target of an OnionProxy cannot be reached through Tor.',
    description: '`kubectl describe onionproxy` in its namespace says why.',
  },
  {
    name: 'TorRestarts',
    expression: 'changes(tor_agent_tor_starts[1h]) > 3',
    time: '0m',
    severity: 'warning',
    summary: 'The tor of a namespace starts again and again.',
    description: "The log of the daemon's pod has its last words.",
  },
]

function alert({ name, expression, time, severity, summary, description }: Alert): object {
  return {
    alert: name,
    expr: expression,
    for: time,
    labels: { severity },
    annotations: { summary, description },
  }
}
