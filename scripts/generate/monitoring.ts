import { MANAGED_BY } from '../../src/tor/operator/names.ts'
import { type Alert, OPERATOR_ALERTS, RUNBOOKS, TOR_ALERTS } from './alerts.ts'
import { type Hole, inline } from './holes.ts'
import { type Install, meta, OPERATOR, SELECTOR } from './install.ts'

/** What the Prometheus operator reads, and what Grafana does. */

const MONITORING = 'monitoring.coreos.com/v1'
/** Of the monitors of the daemons: users of PodMonitors know it. */
const DAEMONS = 'tor-operator'
/** Key of the ConfigMap: the name of the file that Grafana's sidecar writes. */
export const DASHBOARD_KEY = 'postern.json'

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
    metadata: { ...meta(install, DAEMONS), labels: { ...install.labels, ...labels } },
    spec: {
      namespaceSelector: { any: true },
      selector: { matchLabels: MANAGED_BY },
      podMetricsEndpoints: [{ port: 'metrics', path: '/metrics', interval }],
    },
  }
}

/** The same pods by their Services `<daemon>-metrics`: instead of the PodMonitor, or every sum is twice what it is. */
export function daemonServiceMonitor(install: Install, { labels, interval }: MonitorValues): object {
  return {
    apiVersion: MONITORING,
    kind: 'ServiceMonitor',
    metadata: { ...meta(install, DAEMONS), labels: { ...install.labels, ...labels } },
    spec: {
      namespaceSelector: { any: true },
      selector: { matchLabels: { ...MANAGED_BY, 'app.kubernetes.io/component': 'tor-daemon' } },
      jobLabel: Object.keys(MANAGED_BY)[0],
      endpoints: [{ port: 'metrics', path: '/metrics', interval }],
    },
  }
}

/** Parts of the alerts that only a chart sets. */
export interface RuleValues {
  labels?: Record<string, unknown>
  /** Of a page, by its file. */
  runbook?: (file: string) => unknown
  /** A text in which Prometheus finds templates of its own. */
  text?: (text: string) => unknown
}

export function prometheusRule(install: Install, values: RuleValues = {}): object {
  return {
    apiVersion: MONITORING,
    kind: 'PrometheusRule',
    metadata: { ...meta(install, OPERATOR), labels: { ...install.labels, ...values.labels } },
    spec: {
      groups: [
        { name: 'postern', rules: OPERATOR_ALERTS.map((one) => rule(one, values)) },
        { name: 'postern-tor', rules: TOR_ALERTS.map((one) => rule(one, values)) },
      ],
    },
  }
}

function rule(alert: Alert, values: RuleValues): object {
  const { runbook = (file) => `${RUNBOOKS}/${file}`, text = (same) => same } = values
  return {
    alert: alert.name,
    expr: alert.expression,
    for: alert.time,
    labels: { severity: alert.severity },
    annotations: {
      summary: text(alert.summary),
      description: text(alert.description),
      runbook_url: runbook(`${alert.name}.md`),
    },
  }
}

/** A text as a template of the chart that gives it back with its own templates whole. */
export function escaped(text: string): Hole | string {
  return text.includes('{{') ? inline(`${JSON.stringify(text)} | quote`) : text
}

/** Parts of the ConfigMap that only a chart sets. */
export interface DashboardValues {
  labels?: Record<string, unknown>
  annotations?: unknown
  data?: unknown
}

/** For Grafana's sidecar, which finds it by its label. The dashboard itself is filled in by kustomize or Helm. */
export function dashboardConfigMap(install: Install, values: DashboardValues = {}): object {
  const { labels, annotations, data } = values
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      ...meta(install, 'postern-dashboard'),
      labels: { ...install.labels, ...(labels ?? { grafana_dashboard: '1' }) },
      annotations,
    },
    data,
  }
}
