import { createHash } from 'node:crypto'
import type { Resource } from '../../core/resource.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import { METRICS_PORT, REPORT_PORT } from '../contract.ts'
import { START_ONLY_OPTIONS } from '../options.ts'
import {
  type DaemonId,
  daemonLabels,
  keysName,
  podSelector,
  START_OPTIONS_ANNOTATION,
  topologyName,
} from './names.ts'
import type { TorSettings } from './observed.ts'
import { owned } from './owned.ts'
import { type KeptVolume, keptVolume, startsBeside } from './persistence.ts'

const TOPOLOGY_MOUNT = '/etc/postern/topology'
const KEYS_MOUNT = '/etc/postern/keys'
const DATA_MOUNT = '/var/lib/postern'
const RUN_MOUNT = '/run/postern'
/** What a pod needs after its linger for streams that still run, and to end tor. */
const END_SECONDS = 20
const REQUESTS = { cpu: '25m', memory: '128Mi' }

/**
 * The daemon's Deployment. A rollout starts the new pod first, where its volume allows that, and the new pod is ready
 * once its onions are published.
 * It names nothing that changes with onions and proxies: those never replace a pod.
 */
export function deployment(owner: TorDaemon, daemon: DaemonId, settings: TorSettings): Resource {
  const { metadata = {}, spec = {} } = owner.spec?.podTemplate ?? {}
  const kept = keptVolume(owner, daemon)
  // Without a successor beside it there is nobody to wait for.
  const own = startsBeside(owner) ? settings : { ...settings, lingerSeconds: 0 }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: owned(owner, daemon, daemon.name),
    spec: {
      replicas: 1,
      revisionHistoryLimit: 2,
      strategy: startsBeside(owner)
        ? { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } }
        : { type: 'Recreate' },
      selector: { matchLabels: podSelector(daemon) },
      template: {
        metadata: {
          labels: { ...metadata.labels, ...daemonLabels(daemon) },
          annotations: { ...metadata.annotations, [START_OPTIONS_ANNOTATION]: startOptions(owner) },
        },
        spec: {
          ...podSpec(daemon, own, kept),
          ...overrides(spec, kept),
          containers: [container(owner, own, kept)],
        },
      },
    },
  }
}

function podSpec(
  daemon: DaemonId,
  { companions, lingerSeconds }: TorSettings,
  kept: KeptVolume,
): Record<string, unknown> {
  return {
    ...(companions ? { serviceAccountName: daemon.name } : {}),
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    ...(lingerSeconds === 0 ? {} : { terminationGracePeriodSeconds: lingerSeconds + END_SECONDS }),
    securityContext: { ...kept.group, ...RESTRICTED },
    volumes: [
      { name: 'topology', configMap: { name: topologyName(daemon) } },
      { name: 'keys', secret: { secretName: keysName(daemon) } },
      { name: 'data', emptyDir: {} },
      { name: 'run', emptyDir: { medium: 'Memory' } },
      ...kept.volumes,
    ],
  }
}

const RESTRICTED = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } }

/** What a user may set of a pod; nothing of it weakens what a pod is held to. */
function overrides(
  spec: NonNullable<NonNullable<TorDaemon['spec']>['podTemplate']>['spec'],
  { group }: KeptVolume,
): object {
  const { securityContext, ...rest } = spec ?? {}
  return securityContext === undefined
    ? rest
    : { ...rest, securityContext: { ...group, ...securityContext, ...RESTRICTED } }
}

function container(owner: TorDaemon, settings: TorSettings, kept: KeptVolume): Record<string, unknown> {
  const { image, imagePullPolicy, lingerSeconds } = settings
  const mounts = [
    '--topology',
    TOPOLOGY_MOUNT,
    '--keys',
    KEYS_MOUNT,
    '--data',
    DATA_MOUNT,
    '--run',
    RUN_MOUNT,
  ]
  const linger = lingerSeconds === 0 ? [] : ['--linger', String(lingerSeconds)]
  return {
    name: 'agent',
    image,
    ...(imagePullPolicy === undefined ? {} : { imagePullPolicy }),
    command: ['postern-tor-agent'],
    args: [...mounts, ...kept.args, '--address', '$(POD_IP)', ...linger],
    env: [{ name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
    ports: [
      { name: 'metrics', containerPort: METRICS_PORT, protocol: 'TCP' },
      { name: 'report', containerPort: REPORT_PORT, protocol: 'TCP' },
    ],
    resources: owner.spec?.resources ?? { requests: REQUESTS },
    readinessProbe: { httpGet: { path: '/readyz', port: 'metrics' }, periodSeconds: 2, timeoutSeconds: 5 },
    livenessProbe: {
      httpGet: { path: '/livez', port: 'metrics' },
      periodSeconds: 10,
      timeoutSeconds: 10,
      failureThreshold: 6,
    },
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
      ...kept.mounts,
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
