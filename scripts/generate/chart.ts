import { TOR_KINDS } from '../../src/tor/api/kinds.ts'
import { customResourceDefinition } from './crd.ts'
import { dashboardFile } from './dashboard.ts'
import {
  block,
  furtherMembers,
  type Hole,
  included,
  inline,
  items,
  optional,
  optionalText,
  yamlFile,
  yamlOf,
} from './holes.ts'
import {
  disruptionBudget,
  type Install,
  metricsService,
  networkPolicy,
  operatorDeployment,
  serviceAccount,
} from './install.ts'
import {
  DASHBOARD_KEY,
  daemonServiceMonitor,
  dashboardConfigMap,
  escaped,
  type MonitorValues,
  podMonitor,
  prometheusRule,
  serviceMonitor,
} from './monitoring.ts'
import {
  CONTROLLERS,
  clusterRole,
  clusterRoleBinding,
  namespacedRole,
  processRole,
  userRoles,
} from './rbac.ts'
import { torOnlyPolicies } from './tor-only.ts'

/** The templates of the chart: the same objects as in `deploy/`, with values in the places where users differ. */

const VALUES = '$.Values'

function holes(): Install {
  return {
    namespace: inline('$.Release.Namespace | quote'),
    labels: {
      'app.kubernetes.io/name': 'postern',
      'app.kubernetes.io/part-of': 'postern',
      CHART: included('postern.labels'),
    },
    replicas: inline(`${VALUES}.replicas`),
    image: inline('include "postern.image" (dict "image" $.Values.image "chart" $.Chart)'),
    pullPolicy: inline(`${VALUES}.image.pullPolicy`),
    torImage: inline('include "postern.image" (dict "image" $.Values.torImage "chart" $.Chart)'),
    torPullPolicy: inline(`${VALUES}.torImage.pullPolicy`),
    daemonPolicies: inline(`${VALUES}.networkPolicy.daemons | quote`),
    args: [
      'operator',
      items('- --controllers={{ join "," $.Values.controllers }}'),
      items('{{- with $.Values.namespaces }}', '- --namespaces={{ join "," . }}', '{{- end }}'),
      items('- --log-level={{ $.Values.logLevel }}'),
    ],
    resources: optional(`${VALUES}.resources`),
    imagePullSecrets: optional(`${VALUES}.imagePullSecrets`),
    nodeSelector: optional(`${VALUES}.nodeSelector`),
    tolerations: optional(`${VALUES}.tolerations`),
    affinity: optional(`${VALUES}.affinity`),
    priorityClassName: optionalText(`${VALUES}.priorityClassName`),
    podAnnotations: optional(`${VALUES}.podAnnotations`),
    podLabels: { MORE: furtherMembers(`${VALUES}.podLabels`) },
    apiServerPorts: [
      items(
        '{{- range $.Values.networkPolicy.apiServerPorts }}',
        '- protocol: TCP',
        '  port: {{ . }}',
        '{{- end }}',
      ),
    ],
  }
}

const HEAD = "{{- /* Made by 'npm run generate': change scripts/generate, not this file. */ -}}\n"

/** The generated files of the chart, by path. */
export function chartFiles(version: string, description: string): Map<string, string> {
  const install = holes()
  const monitor = (name: string): { labels: Record<string, Hole>; interval: Hole } => ({
    labels: { MORE: furtherMembers(`${VALUES}.metrics.${name}.labels`) },
    interval: inline(`${VALUES}.metrics.${name}.interval`),
  })
  const templates = new Map<string, string>([
    ['rbac', rbac(install)],
    ['serviceaccount', yamlFile([serviceAccount(install)])],
    ['deployment', yamlFile([operatorDeployment(install)])],
    ['service', yamlFile([metricsService(install)])],
    ['poddisruptionbudget', yamlFile([disruptionBudget(install)])],
    ['tor-only', torOnly(install)],
    ['networkpolicy', when(`${VALUES}.networkPolicy.enabled`, [networkPolicy(install)])],
    [
      'servicemonitor',
      when(`${VALUES}.metrics.serviceMonitor.enabled`, [serviceMonitor(install, monitor('serviceMonitor'))]),
    ],
    [
      'podmonitor',
      when(`${VALUES}.metrics.podMonitor.enabled`, [podMonitor(install, monitor('podMonitor'))]),
    ],
    [
      'prometheusrule',
      when(`${VALUES}.metrics.prometheusRule.enabled`, [
        prometheusRule(install, {
          labels: { MORE: furtherMembers(`${VALUES}.metrics.prometheusRule.labels`) },
          runbook: (file) => inline(`printf "%s/${file}" ${VALUES}.metrics.prometheusRule.runbooks | quote`),
          text: escaped,
        }),
      ]),
    ],
    ['daemonservicemonitor', daemonMonitor(install, monitor('daemonServiceMonitor'))],
    [
      'dashboard',
      when(`${VALUES}.metrics.dashboard.enabled`, [
        dashboardConfigMap(install, {
          labels: { MORE: furtherMembers(`${VALUES}.metrics.dashboard.labels`) },
          annotations: optional(`${VALUES}.metrics.dashboard.annotations`),
          data: { [DASHBOARD_KEY]: block('$.Files.Get "dashboard.json"') },
        }),
      ]),
    ],
  ])
  for (const kind of TOR_KINDS)
    templates.set(`crd-${kind.plural}`, when(`${VALUES}.crds.install`, [crd(install, kind)]))
  return new Map([
    ['charts/postern/Chart.yaml', chart(version, description)],
    ['charts/postern/dashboard.json', dashboardFile()],
    ...[...templates].map(([name, text]): [string, string] => [
      `charts/postern/templates/${name}.yaml`,
      `${HEAD}${text}`,
    ]),
  ])
}

function chart(version: string, description: string): string {
  return yamlOf({
    apiVersion: 'v2',
    name: 'postern',
    description,
    type: 'application',
    version,
    appVersion: version,
    // The first in which CEL rules of CustomResourceDefinitions are stable.
    kubeVersion: '>=1.29.0-0',
    keywords: ['tor', 'onion', 'operator'],
  })
}

/** A release that is removed leaves the kinds, and with them what users declared. */
function crd(install: Install, kind: (typeof TOR_KINDS)[number]): object {
  const { metadata, ...rest } = customResourceDefinition(kind) as { metadata: object }
  const whole = {
    ...rest,
    metadata: { ...metadata, labels: install.labels, annotations: { 'helm.sh/resource-policy': 'keep' } },
  }
  if (JSON.stringify(rest).includes('{{')) throw new Error(`${kind.kind}: its schema reads as a template`)
  return whole
}

/** Never beside the PodMonitor: each pod would be counted twice. */
function daemonMonitor(install: Install, values: MonitorValues): string {
  const text =
    'metrics: enable podMonitor or daemonServiceMonitor, not both: each daemon would be counted twice'
  const both = `and ${VALUES}.metrics.daemonServiceMonitor.enabled ${VALUES}.metrics.podMonitor.enabled`
  const refused = `{{- if ${both} }}\n{{- fail ${JSON.stringify(text)} }}\n{{- end }}\n`
  return `${refused}${when(`${VALUES}.metrics.daemonServiceMonitor.enabled`, [daemonServiceMonitor(install, values)])}`
}

function when(condition: string, objects: object[]): string {
  return `{{- if ${condition} }}\n${yamlFile(objects)}{{- end }}\n`
}

/** In each of the namespaces that are named. */
function torOnly(install: Install): string {
  const policies = yamlFile(torOnlyPolicies(install, inline('$namespace | quote')))
  return `{{- range $namespace := ${VALUES}.networkPolicy.torOnly }}\n---\n${policies}{{- end }}\n`
}

/** Without namespaces: one ClusterRole a controller. With them: a Role in each, and nothing of the whole cluster. */
function rbac(install: Install): string {
  const parts = [yamlFile(processRole(install))]
  for (const name of Object.keys(CONTROLLERS)) {
    const wide = yamlFile([clusterRole(install, name), clusterRoleBinding(install, name)])
    const narrow = yamlFile(namespacedRole(install, name, inline('$namespace | quote')))
    parts.push(
      `{{- if has "${name}" ${VALUES}.controllers }}`,
      `{{- range $namespace := ${VALUES}.namespaces }}`,
      `---\n${narrow}{{- else }}`,
      `---\n${wide}{{- end }}`,
      '{{- end }}',
    )
  }
  parts.push(
    `{{- if and ${VALUES}.userRoles (not ${VALUES}.namespaces) }}`,
    `---\n${yamlFile(userRoles(install))}{{- end }}`,
  )
  return `${parts.map((part) => part.trimEnd()).join('\n')}\n`
}
