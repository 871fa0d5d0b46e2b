import { Exposition, gauge } from '../../agent/exposition.ts'
import type { TorReport } from '../contract.ts'

/** What Prometheus sees of an agent: read off the report when it asks. */
export function agentMetrics(report: () => Omit<TorReport, 'revision'>): Exposition {
  return new Exposition([
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
  ])
}
