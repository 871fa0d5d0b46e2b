import { METRICS_PORT, REPORT_PORT } from '../../src/tor/contract.ts'
import { MANAGED_BY } from '../../src/tor/operator/names.ts'
import { COMMENT } from './holes.ts'
import type { Install } from './install.ts'

/** The NetworkPolicies of a namespace whose only way out is Tor. */

const NAME = 'postern-tor-only'
/** Of the pods of every daemon; see `daemonLabels`. */
const DAEMONS = { ...MANAGED_BY, 'app.kubernetes.io/name': 'tor' }

/** @param namespace undefined: that of whoever applies it */
export function torOnlyPolicies(install: Install, namespace?: unknown): object[] {
  const policy = (name: string, spec: object): object => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace, labels: install.labels },
    spec,
  })
  return [
    policy(NAME, {
      podSelector: {},
      policyTypes: ['Egress'],
      egress: [
        {
          [COMMENT]:
            'The daemons of this namespace: SOCKS, HTTP CONNECT and OnionProxies. Not their metrics and reports.',
          to: [{ podSelector: { matchLabels: DAEMONS } }],
          ports: allBut([METRICS_PORT, REPORT_PORT]).map(([port, endPort]) => ({
            protocol: 'TCP',
            port,
            endPort,
          })),
        },
        {
          [COMMENT]:
            "The names of Services. A cluster's DNS also looks names of the open web up: take this out where that must not be.",
          to: [
            {
              namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } },
              podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } },
            },
          ],
          ports: ['UDP', 'TCP'].map((protocol) => ({ protocol, port: 53 })),
        },
      ],
    }),
    policy(`${NAME}-daemons`, {
      podSelector: { matchLabels: DAEMONS },
      policyTypes: ['Egress'],
      egress: [{ [COMMENT]: 'Anywhere: relays and the backends of onions stand at any address.' }],
    }),
  ]
}

/** The ranges of ports between those that are left out, which are given in their order. */
function allBut(ports: readonly number[]): [from: number, to: number][] {
  const starts = [1, ...ports.map((port) => port + 1)]
  const ends = [...ports.map((port) => port - 1), 65_535]
  return starts
    .map((from, index): [number, number] => [from, ends[index]!])
    .filter(([from, to]) => from <= to)
}
