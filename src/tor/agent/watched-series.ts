import { gauge, type Sample, type Series } from '../../agent/exposition.ts'
import type { WatchedState } from '../contract.ts'

/**
 * Series of onions of other daemons, at which this one looks: by their namespace, and never by their address. The label
 * is not called `namespace`: whoever scrapes gives each series that of the pod.
 */
export function watchedSeries(watched: () => readonly WatchedState[]): Series[] {
  const series = (name: string, help: string, read: (state: WatchedState) => number | undefined): Series => ({
    ...gauge(name, help, () =>
      watched().flatMap((state): Sample[] => {
        const value = read(state)
        const { namespace, name: onion } = state
        return value === undefined ? [] : [{ value, labels: { onion_namespace: namespace, onion } }]
      }),
    ),
    labelNames: ['onion_namespace', 'onion'],
  })
  return [
    series(
      'tor_agent_onion_reachable',
      'Onions of other namespaces as this tor sees them: 1 reached, 0 not, several times in a row; absent before that is known.',
      ({ reachable }) => (reachable === undefined ? undefined : reachable ? 1 : 0),
    ),
    series(
      'tor_agent_onion_latency_seconds',
      'How long the newest look that came through took, to the onion or to its page.',
      ({ latencyMs }) => (latencyMs === undefined ? undefined : latencyMs / 1000),
    ),
  ]
}
