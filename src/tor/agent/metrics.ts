import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { TorReport } from '../contract.ts'

/** What Prometheus sees of an agent: read off the report when it asks. */
export function agentMetrics(report: () => Omit<TorReport, 'revision'>): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 50 })
  const registers = [registry]
  new Gauge({
    name: 'tor_agent_bootstrapped',
    help: '1 when tor is bootstrapped.',
    registers,
    collect() {
      this.set(report().tor.bootstrapped ? 1 : 0)
    },
  })
  new Gauge({
    name: 'tor_agent_onions_published',
    help: 'Onions with an acknowledged descriptor upload since they were added.',
    registers,
    collect() {
      this.set(report().onions.filter(({ state }) => state === 'published').length)
    },
  })
  new Gauge({
    name: 'tor_agent_onions_wanted',
    help: 'Onions that should be published.',
    registers,
    collect() {
      this.set(report().onions.length)
    },
  })
  new Gauge({
    name: 'tor_agent_tor_starts',
    help: 'Times that tor was started by this agent.',
    registers,
    collect() {
      this.set(report().tor.starts)
    },
  })
  new Gauge({
    name: 'tor_agent_target_reachable',
    help: '1 when the newest probe reached the target through tor; absent before the first.',
    labelNames: ['proxy', 'target'],
    registers,
    collect() {
      this.reset()
      for (const { proxy, target, reachable } of report().targets) {
        if (reachable !== undefined) this.set({ proxy, target }, reachable ? 1 : 0)
      }
    },
  })
  return registry
}
