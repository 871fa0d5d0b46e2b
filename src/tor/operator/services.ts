import { ownerReference, type Resource } from '../../core/resource.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import { METRICS_PORT } from '../contract.ts'
import { type DaemonId, daemonLabels, metricsName, PROXY_COMPONENT, podSelector } from './names.ts'
import { owned } from './owned.ts'
import type { ProxyDecision } from './proxy-status.ts'

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
      labels: { ...daemonLabels(daemon), 'app.kubernetes.io/component': PROXY_COMPONENT },
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
