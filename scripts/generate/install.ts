import { REPORT_PORT } from '../../src/tor/contract.ts'
import { MANAGED_BY } from '../../src/tor/operator/names.ts'
import { COMMENT } from './holes.ts'

/**
 * The objects of an installation, one builder each. `deploy/` has them with plain values, the chart with holes in the
 * places of its values: both are made of the same builders.
 */

/** What differs between installations; undefined is left out. */
export interface Install {
  namespace: unknown
  /** Of every object, beside what its kind needs. */
  labels: Record<string, unknown>
  replicas: unknown
  image: unknown
  pullPolicy: unknown
  torImage: unknown
  torPullPolicy: unknown
  /** Whether each daemon gets a NetworkPolicy: `true` or `false`. */
  daemonPolicies: unknown
  args: unknown[]
  resources: unknown
  imagePullSecrets?: unknown
  nodeSelector?: unknown
  tolerations?: unknown
  affinity?: unknown
  priorityClassName?: unknown
  podAnnotations?: unknown
  /** Of the operator's pods, beside those that select them. */
  podLabels?: Record<string, unknown>
  /** Ports at which the API server may be reached, after Services are resolved. */
  apiServerPorts: unknown[]
}

export const OPERATOR = 'postern-operator'
const METRICS_SERVICE = 'postern-metrics'
export const METRICS_PORT = 8080
const HEALTH_PORT = 8081
export const SELECTOR: Readonly<Record<string, string>> = {
  'app.kubernetes.io/name': 'postern',
  'app.kubernetes.io/component': 'operator',
}

export function meta(install: Install, name: string): object {
  return { name, namespace: install.namespace, labels: install.labels }
}

export function namespaceObject(install: Install): object {
  const level = Object.fromEntries(
    ['enforce', 'audit', 'warn'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'restricted']),
  )
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: install.namespace, labels: { ...install.labels, ...level } },
  }
}

export function serviceAccount(install: Install): object {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: meta(install, OPERATOR),
    automountServiceAccountToken: false,
  }
}

export function operatorDeployment(install: Install): object {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: meta(install, OPERATOR),
    spec: {
      replicas: install.replicas,
      revisionHistoryLimit: 3,
      selector: { matchLabels: SELECTOR },
      template: {
        metadata: {
          annotations: install.podAnnotations,
          labels: { ...SELECTOR, 'app.kubernetes.io/part-of': 'postern', ...install.podLabels },
        },
        spec: podSpec(install),
      },
    },
  }
}

function podSpec(install: Install): object {
  return {
    serviceAccountName: OPERATOR,
    automountServiceAccountToken: true,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 30,
    priorityClassName: install.priorityClassName,
    imagePullSecrets: install.imagePullSecrets,
    nodeSelector: install.nodeSelector,
    tolerations: install.tolerations,
    affinity: install.affinity,
    topologySpreadConstraints: ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map(
      (topologyKey) => ({
        maxSkew: 1,
        topologyKey,
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: SELECTOR },
      }),
    ),
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'operator',
        image: install.image,
        imagePullPolicy: install.pullPolicy,
        args: install.args,
        env: [
          { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
          { name: 'POSTERN_TOR_IMAGE', value: install.torImage },
          { name: 'POSTERN_IMAGE_PULL_POLICY', value: install.torPullPolicy },
          { name: 'POSTERN_NETWORK_POLICIES', value: install.daemonPolicies },
        ],
        ports: [
          { name: 'metrics', containerPort: METRICS_PORT, protocol: 'TCP' },
          { name: 'health', containerPort: HEALTH_PORT, protocol: 'TCP' },
        ],
        livenessProbe: {
          httpGet: { path: '/livez', port: 'health' },
          periodSeconds: 10,
          timeoutSeconds: 5,
          failureThreshold: 6,
        },
        readinessProbe: {
          httpGet: { path: '/readyz', port: 'health' },
          periodSeconds: 5,
          timeoutSeconds: 5,
        },
        resources: install.resources,
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
      },
    ],
  }
}

export function metricsService(install: Install): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      ...meta(install, METRICS_SERVICE),
      labels: { ...install.labels, 'app.kubernetes.io/component': 'operator' },
    },
    spec: {
      selector: SELECTOR,
      ports: [{ name: 'metrics', port: METRICS_PORT, targetPort: 'metrics', protocol: 'TCP' }],
    },
  }
}

export function disruptionBudget(install: Install): object {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: meta(install, OPERATOR),
    spec: {
      maxUnavailable: 1,
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
      selector: { matchLabels: SELECTOR },
    },
  }
}

/** What the operator's pods may reach and who may reach them. Probes come from the node, which no policy stops. */
export function networkPolicy(install: Install): object {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: meta(install, OPERATOR),
    spec: {
      podSelector: { matchLabels: SELECTOR },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        {
          [COMMENT]: 'Metrics, from inside the cluster.',
          from: [{ namespaceSelector: {} }],
          ports: [{ protocol: 'TCP', port: METRICS_PORT }],
        },
      ],
      egress: [
        {
          [COMMENT]:
            'The API server: it is no pod, so only its ports can be named. Add yours if it is another.',
          ports: install.apiServerPorts,
        },
        {
          [COMMENT]: 'DNS.',
          ports: ['UDP', 'TCP'].map((protocol) => ({ protocol, port: 53 })),
        },
        {
          [COMMENT]: "The reports of the daemons' agents.",
          to: [{ namespaceSelector: {}, podSelector: { matchLabels: MANAGED_BY } }],
          ports: [{ protocol: 'TCP', port: REPORT_PORT }],
        },
      ],
    },
  }
}
