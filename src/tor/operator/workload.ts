import { createHash } from 'node:crypto'
import type { ReportIdentity } from '../../controller/report-identity.ts'
import { ownerReference, type Resource } from '../../core/resource.ts'
import { TOR_API_VERSION } from '../api/group.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import {
  METRICS_PORT,
  REPORT_CERTIFICATE_FILE,
  REPORT_KEY_FILE,
  REPORT_PORT,
  REPORT_TOKEN_FILE,
  TOPOLOGY_FILE,
  type TorTopology,
} from '../contract.ts'
import { START_ONLY_OPTIONS } from '../options.ts'
import {
  type DaemonId,
  daemonLabels,
  keysName,
  metricsName,
  PROVISIONED_ANNOTATION,
  podSelector,
  START_OPTIONS_ANNOTATION,
  topologyName,
} from './names.ts'
import type { Observed, ObservedOnion } from './observed.ts'
import type { ProxyDecision } from './proxy-status.ts'

/** Pure builders of the objects that a daemon owns, one a kind of object. */

const IMAGE = 'postern-tor'
const TOPOLOGY_MOUNT = '/etc/postern/topology'
const KEYS_MOUNT = '/etc/postern/keys'
const DATA_MOUNT = '/var/lib/postern'
const RUN_MOUNT = '/run/postern'

/** The daemon that is made where objects need one and nobody declared it. */
export function provisionedDaemon(daemon: DaemonId): Resource {
  return {
    apiVersion: TOR_API_VERSION,
    kind: 'TorDaemon',
    metadata: {
      namespace: daemon.namespace,
      name: daemon.name,
      labels: daemonLabels(daemon),
      annotations: { [PROVISIONED_ANNOTATION]: 'true' },
    },
  }
}

export function topologyConfigMap(owner: TorDaemon, daemon: DaemonId, topology: TorTopology): Resource {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: owned(owner, daemon, topologyName(daemon)),
    data: { [TOPOLOGY_FILE]: JSON.stringify(topology) },
  }
}

export function keysSecret(
  owner: TorDaemon,
  daemon: DaemonId,
  onions: readonly ObservedOnion[],
  identity: ReportIdentity,
): Resource {
  const data: Record<string, string> = {
    [REPORT_CERTIFICATE_FILE]: base64(identity.certificate),
    [REPORT_KEY_FILE]: base64(identity.privateKey),
    [REPORT_TOKEN_FILE]: base64(identity.token),
  }
  for (const onion of onions) {
    if (onion.key.state !== 'valid') continue
    data[`${onion.object.metadata.name}.key`] = Buffer.from(onion.key.key.secret).toString('base64')
  }
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: owned(owner, daemon, keysName(daemon)),
    type: 'Opaque',
    data,
  }
}

/** The identity that the keys Secret holds already, if it is whole. */
export function identityOf(keys: Observed['keys']): ReportIdentity | undefined {
  const certificate = text(keys?.data?.[REPORT_CERTIFICATE_FILE])
  const privateKey = text(keys?.data?.[REPORT_KEY_FILE])
  const token = text(keys?.data?.[REPORT_TOKEN_FILE])
  if (certificate === undefined || privateKey === undefined || token === undefined) return undefined
  return { certificate, privateKey, token }
}

export function metricsService(owner: TorDaemon, daemon: DaemonId): Resource {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: owned(owner, daemon, metricsName(daemon)),
    spec: {
      selector: podSelector(daemon),
      ports: [{ name: 'metrics', port: METRICS_PORT, targetPort: 'metrics', protocol: 'TCP' }],
    },
  }
}

export function proxyService(daemon: DaemonId, decision: ProxyDecision): Resource {
  const { proxy, plan } = decision
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      namespace: daemon.namespace,
      name: proxy.metadata.name,
      labels: { ...daemonLabels(daemon), 'app.kubernetes.io/component': 'onion-proxy' },
      ownerReferences: [ownerReference(proxy)],
    },
    spec: {
      selector: podSelector(daemon),
      ports: plan.targets.map((target) => ({
        name: `port-${target.listenPort}`,
        port: target.listenPort,
        targetPort: target.listenPort,
        protocol: 'TCP',
      })),
    },
  }
}

export function deployment(owner: TorDaemon, daemon: DaemonId): Resource {
  const labels = daemonLabels(daemon)
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: owned(owner, daemon, daemon.name),
    spec: {
      replicas: 1,
      selector: { matchLabels: podSelector(daemon) },
      template: {
        metadata: { labels, annotations: { [START_OPTIONS_ANNOTATION]: startOptions(owner) } },
        spec: podSpec(owner),
      },
    },
  }
}

function podSpec(owner: TorDaemon): Record<string, unknown> {
  const resources = owner.spec?.resources
  return {
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'agent',
        image: IMAGE,
        command: ['postern-tor-agent'],
        args: [
          '--topology',
          TOPOLOGY_MOUNT,
          '--keys',
          KEYS_MOUNT,
          '--data',
          DATA_MOUNT,
          '--run',
          RUN_MOUNT,
          '--address',
          '$(POD_IP)',
        ],
        env: [{ name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
        ports: [
          { name: 'metrics', containerPort: METRICS_PORT, protocol: 'TCP' },
          { name: 'report', containerPort: REPORT_PORT, protocol: 'TCP' },
        ],
        ...(resources === undefined ? {} : { resources }),
        readinessProbe: { httpGet: { path: '/readyz', port: 'metrics' }, periodSeconds: 5 },
        livenessProbe: { httpGet: { path: '/livez', port: 'metrics' }, periodSeconds: 10 },
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        volumeMounts: [
          { name: 'topology', mountPath: TOPOLOGY_MOUNT, readOnly: true },
          { name: 'keys', mountPath: KEYS_MOUNT, readOnly: true },
          { name: 'data', mountPath: DATA_MOUNT },
          { name: 'run', mountPath: RUN_MOUNT },
        ],
      },
    ],
    volumes: [
      { name: 'topology', configMap: { name: topologyName(idOf(owner)) } },
      { name: 'keys', secret: { secretName: keysName(idOf(owner)) } },
      { name: 'data', emptyDir: {} },
      { name: 'run', emptyDir: { medium: 'Memory' } },
    ],
  }
}

/** Digest of the options that tor takes only at its start: another one replaces the pod. */
function startOptions(owner: TorDaemon): string {
  const chosen = Object.entries(owner.spec?.options ?? {})
    .filter(([name]) => START_ONLY_OPTIONS.some((one) => one.toLowerCase() === name.toLowerCase()))
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256').update(JSON.stringify(chosen)).digest('hex').slice(0, 16)
}

function owned(owner: TorDaemon, daemon: DaemonId, name: string): Resource['metadata'] {
  return {
    namespace: daemon.namespace,
    name,
    labels: daemonLabels(daemon),
    ownerReferences: [ownerReference(owner)],
  }
}

function idOf(owner: TorDaemon): DaemonId {
  return { namespace: owner.metadata.namespace ?? 'default', name: owner.metadata.name }
}

function base64(value: string): string {
  return Buffer.from(value, 'utf8').toString('base64')
}

function text(value: string | undefined): string | undefined {
  return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8')
}
