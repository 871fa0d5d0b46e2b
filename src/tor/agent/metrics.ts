import { counter, Exposition, gauge } from '../../agent/exposition.ts'
import type { BridgeHealth, TorReport } from '../contract.ts'
import { type OnionSeriesOptions, onionSeries } from './onion-series.ts'
import { TorMetrics, type TorMetricsOptions } from './tor-metrics.ts'
import { watchedSeries } from './watched-series.ts'

const BRIDGE_VALUES: Readonly<Record<BridgeHealth, number>> = { healthy: 1, unknown: 0, dead: -1 }

type Report = () => Omit<TorReport, 'revision'>

/** What the report does not say of onions. */
export interface OnionSources extends Pick<OnionSeriesOptions, 'addresses' | 'traffic'> {
  tor: Pick<TorMetrics, 'refresh' | 'figures' | 'errors'>
}

/** The series of a running agent. */
export function runningMetrics(
  report: Report,
  options: Pick<OnionSeriesOptions, 'traffic'> &
    Pick<TorMetricsOptions, 'host' | 'control' | 'addresses' | 'log'>,
): Exposition {
  const tor = new TorMetrics({
    ...options,
    bootstrapped: () => report().tor.bootstrapped,
    onions: () => report().onions.map(({ address }) => address),
  })
  return agentMetrics(report, { ...options, tor })
}

/** What Prometheus sees of an agent: read off the report, and heard from tor, when it asks. */
export function agentMetrics(report: Report, { addresses, traffic, tor }: OnionSources): Exposition {
  const series = [
    gauge('tor_agent_bootstrapped', '1 when tor is bootstrapped.', () => (report().tor.bootstrapped ? 1 : 0)),
    gauge(
      'tor_agent_onions_published',
      'Onions with an acknowledged descriptor upload since they were added.',
      () => report().onions.filter(({ state }) => state === 'published').length,
    ),
    gauge('tor_agent_onions_wanted', 'Onions that should be published.', () => report().onions.length),
    gauge('tor_agent_tor_starts', 'Times that tor was started by this agent.', () => report().tor.starts),
    {
      ...gauge(
        'tor_agent_target_reachable',
        '1 when the newest probe reached the target through tor; absent before the first.',
        () =>
          report().targets.flatMap(({ proxy, target, reachable }) =>
            reachable === undefined ? [] : [{ value: reachable ? 1 : 0, labels: { proxy, target } }],
          ),
      ),
      labelNames: ['proxy', 'target'],
    },
    {
      ...gauge('tor_agent_bridge_state', 'Bridges in force: 1 healthy, 0 not tried yet, -1 dead.', () =>
        (report().bridges ?? []).map(({ fingerprint, state }) => ({
          value: BRIDGE_VALUES[state],
          labels: { fingerprint },
        })),
      ),
      labelNames: ['fingerprint'],
    },
    ...onionSeries({
      onions: () => report().onions,
      addresses,
      traffic,
      figures: (address) => tor.figures(address),
    }),
    ...watchedSeries(() => report().watched ?? []),
    {
      ...counter(
        'tor_agent_tor_metrics_errors_total',
        'Times that tor did not tell how its onions are, by where it was asked: its series are left out meanwhile.',
        () => Object.entries(tor.errors).map(([source, value]) => ({ value, labels: { source } })),
      ),
      labelNames: ['source'],
    },
  ]
  return new Exposition(series, () => tor.refresh())
}
