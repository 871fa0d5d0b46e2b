/** NetworkPolicies read by the rules of networking.k8s.io/v1, for want of a network that does. */

interface Selector {
  matchLabels?: Record<string, string>
}
interface Peer {
  podSelector?: Selector
  namespaceSelector?: Selector
}
interface Rule {
  from?: Peer[]
  to?: Peer[]
  ports?: { protocol?: string; port?: number; endPort?: number }[]
}
export interface Policy {
  metadata: { name: string; namespace: string }
  spec: { podSelector: Selector; policyTypes: string[]; ingress?: Rule[]; egress?: Rule[] }
}
export interface Pod {
  namespace: string
  labels: Record<string, string>
}
/** Undefined: something that is no pod of this cluster. */
export type End = Pod | undefined

const matches = ({ matchLabels = {} }: Selector, labels: Record<string, string>): boolean =>
  Object.entries(matchLabels).every(([name, value]) => labels[name] === value)

function isPeer({ podSelector, namespaceSelector }: Peer, own: string, end: End): boolean {
  if (end === undefined) return false
  const there =
    namespaceSelector === undefined
      ? end.namespace === own
      : matches(namespaceSelector, { 'kubernetes.io/metadata.name': end.namespace })
  return there && (podSelector === undefined || matches(podSelector, end.labels))
}

/** Whether the policies of one end let it pass: those that select it add up, and none lets all pass. */
function passes(
  policies: Policy[],
  way: 'Ingress' | 'Egress',
  end: End,
  other: End,
  port: number,
  protocol: string,
): boolean {
  if (end === undefined) return true
  const own = policies.filter(
    ({ metadata, spec }) =>
      metadata.namespace === end.namespace &&
      spec.policyTypes.includes(way) &&
      matches(spec.podSelector, end.labels),
  )
  if (own.length === 0) return true
  return own.some(({ metadata, spec }) =>
    ((way === 'Ingress' ? spec.ingress : spec.egress) ?? []).some((rule) => {
      const peers = way === 'Ingress' ? rule.from : rule.to
      const goes =
        rule.ports?.some(
          (one) =>
            (one.protocol ?? 'TCP') === protocol &&
            (one.port === undefined || (port >= one.port && port <= (one.endPort ?? one.port))),
        ) ?? true
      return goes && (peers?.some((peer) => isPeer(peer, metadata.namespace, other)) ?? true)
    }),
  )
}

/** Whether a connection passes: the policies of both ends count, those that select neither do not. */
export function reader(policies: Policy[]): (from: End, to: End, port: number, protocol?: string) => boolean {
  return (from, to, port, protocol = 'TCP') =>
    passes(policies, 'Egress', from, to, port, protocol) &&
    passes(policies, 'Ingress', to, from, port, protocol)
}
