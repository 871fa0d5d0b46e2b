import type { Resource } from '../../core/resource.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import { METRICS_PORT, REPORT_PORT, type TorTopology } from '../contract.ts'
import { accessPorts } from './access.ts'
import { type DaemonId, podSelector } from './names.ts'
import type { TorSettings } from './observed.ts'
import { owned } from './owned.ts'

/** What stands beside a daemon's Deployment in a cluster, one builder a kind of object. */

/** Of its own, and without any right: the default one may have been given some. */
export function serviceAccount(owner: TorDaemon, daemon: DaemonId): Resource {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: owned(owner, daemon, daemon.name),
    automountServiceAccountToken: false,
  }
}

/**
 * An eviction may take the one pod at any time, since it goes on serving until its successor does; a pod that is not
 * ready never holds a drain up.
 */
export function disruptionBudget(owner: TorDaemon, daemon: DaemonId): Resource {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: owned(owner, daemon, daemon.name),
    spec: {
      maxUnavailable: 1,
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
      selector: { matchLabels: podSelector(daemon) },
    },
  }
}

/**
 * Who may connect to a daemon's pod: metrics and proxies from inside the cluster, SOCKS and HTTP CONNECT from its own
 * namespace, the report from the operator, and nobody else. It may connect to anywhere: relays and backends stand at any address.
 */
export function networkPolicy(
  owner: TorDaemon,
  daemon: DaemonId,
  topology: TorTopology,
  settings: TorSettings,
): Resource {
  const inside = [{ namespaceSelector: {} }]
  const listenPorts = topology.proxies.flatMap((proxy) => proxy.targets.map((target) => target.listenPort))
  // They lead to wherever a client names, so they are the namespace's own.
  const access = accessPorts(topology.daemon.access)
  const { operatorNamespace } = settings
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: owned(owner, daemon, daemon.name),
    spec: {
      podSelector: { matchLabels: podSelector(daemon) },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        { from: inside, ports: [tcp(METRICS_PORT)] },
        {
          // An operator outside the cluster has no namespace: its address is unknown.
          ...(operatorNamespace === undefined
            ? {}
            : {
                from: [
                  {
                    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': operatorNamespace } },
                    podSelector: { matchLabels: { 'app.kubernetes.io/name': 'postern' } },
                  },
                ],
              }),
          ports: [tcp(REPORT_PORT)],
        },
        ...(listenPorts.length === 0
          ? []
          : [{ from: inside, ports: listenPorts.sort((a, b) => a - b).map(tcp) }]),
        ...(access.length === 0 ? [] : [{ from: [{ podSelector: {} }], ports: access.map(tcp) }]),
      ],
      egress: [{}],
    },
  }
}

function tcp(port: number): { port: number; protocol: string } {
  return { port, protocol: 'TCP' }
}
