import type { Network } from '../types.ts'
import type { ClusterObject } from './api.ts'

/** Names of cluster.local from the API server's Services and EndpointSlices; every other name is refused. */
const corefile = `.:5353 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa {
        ttl 1
    }
    cache 1
}
`

const meta = { name: 'coredns', namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' } }

/** The cluster's DNS as objects to apply, in order. */
export function dnsObjects(network: Network, image: string): ClusterObject[] {
  const subject = { kind: 'ServiceAccount', name: meta.name, namespace: meta.namespace }
  const probe = (path: string, port: number) => ({ httpGet: { path, port }, periodSeconds: 1 })
  const container = {
    name: 'coredns',
    image,
    imagePullPolicy: 'Never',
    args: ['-conf', '/etc/coredns/Corefile'],
    ports: [
      { name: 'dns', containerPort: 5353, protocol: 'UDP' },
      { name: 'dns-tcp', containerPort: 5353, protocol: 'TCP' },
    ],
    readinessProbe: probe('/ready', 8181),
    livenessProbe: { ...probe('/health', 8080), periodSeconds: 10, failureThreshold: 6 },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: [{ name: 'config', mountPath: '/etc/coredns', readOnly: true }],
  }
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: meta },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'system:coredns' },
      rules: [
        { apiGroups: [''], resources: ['services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
        { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
      ],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'system:coredns' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:coredns' },
      subjects: [subject],
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: meta, data: { Corefile: corefile } },
    {
      apiVersion: 'apps/v1',
      // Not a Deployment: it stays when the node is drained.
      kind: 'DaemonSet',
      metadata: meta,
      spec: {
        selector: { matchLabels: meta.labels },
        template: {
          metadata: { labels: meta.labels },
          spec: {
            serviceAccountName: meta.name,
            dnsPolicy: 'Default',
            securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
            containers: [container],
            volumes: [{ name: 'config', configMap: { name: meta.name } }],
          },
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { ...meta, name: 'kube-dns' },
      spec: {
        selector: meta.labels,
        clusterIP: network.dnsAddress,
        ports: [
          { name: 'dns', port: 53, targetPort: 'dns', protocol: 'UDP' },
          { name: 'dns-tcp', port: 53, targetPort: 'dns-tcp', protocol: 'TCP' },
        ],
      },
    },
  ]
}
