import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ENDPOINT_SLICE } from '../../src/cluster/kinds.ts'
import { ONION_PROXY } from '../../src/tor/api/onion-proxy.ts'
import { kubernetesMissing } from '../../testbed/kubernetes/left-out.ts'
import { sharedTorNetwork } from '../../testbed/tor-network/shared.ts'
import { OperatorProcess } from '../faults/operator.ts'
import { World } from '../faults/world.ts'
import { allHaveData } from '../monitoring/panels.ts'
import { Prometheus, type Target } from '../monitoring/prometheus.ts'
import { checkMetrics, prometheusMissing } from '../monitoring/promtool.ts'
import { panelQueries, seriesIn, served, shippedRules } from '../monitoring/sources.ts'
import { backend, document, onionService, startUp, torDaemon, type Up, webServer } from './up.ts'
import { page, visitUntil } from './visit.ts'

/** A real Prometheus scrapes what runs, as the monitors tell it to: what panels and alerts ask for is there. */

/** Of what this set-up has nothing to tell, and why. */
const WITHOUT: Readonly<Record<string, string>> = {
  tor_agent_bridge_state: 'the network is reached directly',
  tor_agent_onion_reachable: 'no other tor probes',
  tor_agent_onion_pow_effort: "tor's MetricsPort is closed on one machine",
  tor_agent_onion_rejected_introductions_total: "tor's MetricsPort is closed on one machine",
}

/** Panels whose series are served, and are not left out, by a word that each of their queries has. */
function expected(
  of: (series: readonly string[], expression: string) => boolean,
): ReturnType<typeof panelQueries> {
  const there = served()
  return panelQueries().filter(({ expression }) => {
    const series = seriesIn(expression)
    return of(series, expression) && series.every((name) => there.has(name) && WITHOUT[name] === undefined)
  })
}

const isOperator = (series: readonly string[]): boolean => series.some((name) => name.startsWith('postern_'))

/** Every rule is evaluated, and none of these has anything to say. */
async function calm(prometheus: Prometheus, prefix: string): Promise<void> {
  const rules = await prometheus.rules()
  assert.deepEqual(
    rules.filter(({ health }) => health !== 'ok'),
    [],
  )
  const ours = rules.filter(({ name }) => name.startsWith(prefix))
  assert.ok(ours.length > 0)
  assert.deepEqual(
    ours.filter(({ state }) => state !== 'inactive'),
    [],
  )
}

const skip = prometheusMissing()
const network = skip === undefined ? await sharedTorNetwork() : undefined

describe('daemons, by Prometheus', skip === undefined ? {} : { skip }, () => {
  /** Where the Service `<daemon>-metrics` leads, with the labels of a PodMonitor. */
  function scraped(up: Up): Target {
    const slice = up.get(ENDPOINT_SLICE, 'tor-metrics-postern')
    const address = slice?.endpoints?.[0]?.addresses[0]
    const port = slice?.ports?.find(({ name }) => name === 'metrics')?.port
    assert.ok(address !== undefined && port !== undefined, JSON.stringify(slice))
    const labels = { namespace: 'default', pod: 'tor-1', container: 'agent', endpoint: 'metrics' }
    return { job: 'postern-system/tor-operator', address: `${address}:${port}`, labels }
  }

  test('every panel of the dashboard that can have data has it, and no alert fires', async () => {
    using server = await webServer('watched')
    await using up = startUp({
      'tor.yaml': torDaemon(network!.options),
      'web.yaml': `${onionService('web', { pow: { enabled: true } })}---\n${backend('web', server.port)}`,
    })
    const host = await up.published('web')
    up.write(
      'proxy.yaml',
      document({
        apiVersion: 'tor.fr0st.dev/v1alpha1',
        kind: 'OnionProxy',
        metadata: { name: 'upstreams' },
        spec: { targets: [{ name: 'self', onion: host, port: 80, listenPort: 6697 }] },
      }),
    )
    await visitUntil(network!.socksPort, host, 'watched')
    await up.until(
      'the proxy to be ready',
      () => up.condition(ONION_PROXY, 'upstreams', 'Ready')?.status === 'True',
      120_000,
    )
    const target = scraped(up)
    await using prometheus = await Prometheus.start([target], [shippedRules()])
    await allHaveData(
      prometheus,
      expected((series) => !isOperator(series)),
      () => page(network!.socksPort, host),
    )
    assert.deepEqual(
      (await prometheus.query('tor_agent_target_reachable')).map(({ metric, value }) => [metric, value[1]]),
      [
        [
          {
            __name__: 'tor_agent_target_reachable',
            instance: target.address,
            job: target.job,
            ...target.labels,
            proxy: 'upstreams',
            target: 'self',
          },
          '1',
        ],
      ],
    )
    await calm(prometheus, 'Tor')
    const text = await (await fetch(`http://${target.address}/metrics`)).text()
    checkMetrics(text)
    assert.ok(!text.includes(host.replace('.onion', '')), 'no address leaves the pod')
  })
})

const noOperator = skip ?? kubernetesMissing()
describe('the operator, by Prometheus', noOperator === undefined ? {} : { skip: noOperator }, () => {
  test('every panel of the dashboard has data, and no alert fires', async () => {
    await using world = await World.start()
    await world.namespace('postern-system')
    await world.usual('watched')
    await using proxy = await world.proxy()
    await using operator = await OperatorProcess.start(proxy.kubeconfig, '--identity', 'one')
    await world.declared()
    const labels = { namespace: 'postern-system', pod: 'one', container: 'operator', endpoint: 'metrics' }
    const target = { job: 'postern-metrics', address: operator.metricsAddress, labels }
    await using prometheus = await Prometheus.start([target], [shippedRules()])
    const [space] = world.spaces
    let more = 0
    await allHaveData(prometheus, expected(isOperator), () => space!.onion(`more-${++more}`))
    await calm(prometheus, 'Postern')
    checkMetrics(await (await fetch(`http://${target.address}/metrics`)).text())
  })
})
