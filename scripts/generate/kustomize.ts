import { TOR_KINDS } from '../../src/tor/api/kinds.ts'
import { customResourceDefinition } from './crd.ts'
import { dashboardFile } from './dashboard.ts'
import { yamlFile } from './holes.ts'
import {
  disruptionBudget,
  type Install,
  metricsService,
  namespaceObject,
  networkPolicy,
  operatorDeployment,
  serviceAccount,
} from './install.ts'
import {
  daemonServiceMonitor,
  dashboardConfigMap,
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

/** What `deploy/` installs by itself: the values that the chart has by default. */
export function plainInstall(version: string): Install {
  return {
    namespace: 'postern-system',
    labels: {
      'app.kubernetes.io/name': 'postern',
      'app.kubernetes.io/part-of': 'postern',
      'app.kubernetes.io/version': version,
    },
    replicas: 2,
    image: `postern:${version}`,
    pullPolicy: 'IfNotPresent',
    torImage: `postern-tor:${version}`,
    torPullPolicy: 'IfNotPresent',
    daemonPolicies: 'true',
    args: ['operator', `--controllers=${Object.keys(CONTROLLERS).join(',')}`, '--log-level=info'],
    resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '256Mi' } },
    apiServerPorts: [443, 6443].map((port) => ({ protocol: 'TCP', port })),
  }
}

const HEAD = "# Made by 'npm run generate': change scripts/generate, not this file.\n"
/** Namespace of the Role that the component `namespaced` starts with. */
const SERVED = 'default'

/** The generated files of `deploy/`, by path. */
export function deployFiles(version: string): Map<string, string> {
  const install = plainInstall(version)
  const controllers = Object.keys(CONTROLLERS)
  const monitor = { interval: '30s' }
  const files = new Map<string, object[]>()
  for (const kind of TOR_KINDS) files.set(`base/crds/${kind.plural}.yaml`, [customResourceDefinition(kind)])
  files.set('base/rbac.yaml', [
    serviceAccount(install),
    ...controllers.flatMap((name) => [clusterRole(install, name), clusterRoleBinding(install, name)]),
    ...processRole(install),
    ...userRoles(install),
  ])
  files.set('base/operator.yaml', [
    namespaceObject(install),
    operatorDeployment(install),
    metricsService(install),
    disruptionBudget(install),
  ])
  files.set('components/namespaced/roles.yaml', [
    ...controllers.flatMap((name) => namespacedRole(install, name, SERVED)),
  ])
  files.set('components/networkpolicy/networkpolicy.yaml', [networkPolicy(install)])
  files.set('components/tor-only/tor-only.yaml', torOnlyPolicies(install))
  files.set('components/prometheus/monitoring.yaml', [
    serviceMonitor(install, monitor),
    podMonitor(install, monitor),
    prometheusRule(install),
    dashboardConfigMap(install),
  ])
  files.set('components/prometheus-services/monitoring.yaml', [daemonServiceMonitor(install, monitor)])
  return new Map([
    ...[...files].map(([path, objects]): [string, string] => [`deploy/${path}`, yamlFile(objects, HEAD)]),
    ['deploy/components/prometheus/dashboard.json', dashboardFile()],
  ])
}
