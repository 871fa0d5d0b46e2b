import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { ENDPOINT_SLICE } from '../../src/cluster/kinds.ts'
import { parseSample } from '../../src/tor/agent/metrics-port.ts'
import { sharedTorNetwork } from '../../testbed/tor-network/shared.ts'
import { checkMetrics, prometheusMissing } from '../monitoring/promtool.ts'
import { startBridgedAgent } from './bridged-agent.ts'
import { backend, onionService, startUp, torDaemon, webServer } from './up.ts'
import { stream, visitUntil } from './visit.ts'

/** What an agent says of its onions while they are visited, on a real network. */

const network = await sharedTorNetwork()

/** Value of the sample that has these labels, and no others but those of `more`. */
function value(text: string, name: string, labels: Record<string, string>): number | undefined {
  for (const line of text.split('\n')) {
    const sample = line.startsWith(name) ? parseSample(line) : undefined
    if (sample?.name !== name) continue
    if (JSON.stringify({ ...sample.labels }) === JSON.stringify(labels)) return sample.value
  }
  return undefined
}

describe('metrics of onions', () => {
  test('visits are counted by the name of the OnionService, and no address is told', async () => {
    using server = await webServer('counted')
    await using up = startUp({
      'tor.yaml': torDaemon(network.options),
      'web.yaml': `${onionService('web')}---\n${backend('web', server.port)}`,
    })
    const host = await up.published('web')
    await visitUntil(network.socksPort, host, 'counted')
    const slice = up.get(ENDPOINT_SLICE, 'tor-metrics-postern')
    const port = slice?.ports?.find(({ name }) => name === 'metrics')?.port
    const url = `http://${slice?.endpoints?.[0]?.addresses[0]}:${port}/metrics`
    const open = await stream(network.socksPort, host, 80)
    let text = ''
    const of = (name: string, labels = {}): number =>
      value(text, `tor_agent_onion_${name}`, { onion: 'web', ...labels }) ?? Number.NaN
    // What was heard from tor is kept for some seconds, and a stream is there only when tor has opened it.
    for (const end = Date.now() + 60_000; ; await pause(200)) {
      text = await (await fetch(url)).text()
      if (of('streams') === 1 && of('intro_circuits') >= 1) break
      assert.ok(Date.now() < end, `the figures of a visited onion, not ${text}`)
    }
    open.destroy()
    assert.ok(of('bytes_total', { direction: 'in' }) > 40, text)
    assert.ok(of('bytes_total', { direction: 'out' }) > 'counted'.length, text)
    assert.ok(of('descriptor_age_seconds') >= 0 && of('descriptor_age_seconds') < 600, text)
    assert.ok(of('uploads_asked_total') >= of('uploads_acknowledged_total'), text)
    assert.ok(of('uploads_acknowledged_total') >= 1, text)
    assert.equal(value(text, 'tor_agent_tor_metrics_errors_total', { source: 'control' }), 0)
    assert.doesNotMatch(text, /[a-z2-7]{55}d/)
    assert.ok(
      !text.includes('tor_agent_onion_pow_effort{'),
      'what others on this machine could read is closed',
    )
    if (prometheusMissing() === undefined) checkMetrics(text)
  })

  test('where addresses may be seen, they stand beside the names, and MetricsPort is asked', async () => {
    using server = await webServer('seen')
    await using it = await startBridgedAgent(network.options, server.port)
    it.topology({ metrics: { addresses: true } })
    await it.until('the onion to be published', () => it.report().onions[0]?.state === 'published')
    await visitUntil(network.socksPort, it.host, 'seen')
    const own = { onion: 'web', address: it.host }
    const text = await it.until('tor to tell of the visit', async () => {
      const scraped = await it.scrape()
      return (value(scraped, 'tor_agent_onion_rendezvous_total', own) ?? 0) >= 1 ? scraped : undefined
    })
    assert.equal(value(text, 'tor_agent_onion_pow_effort', own), 0)
    assert.equal(value(text, 'tor_agent_onion_rejected_introductions_total', { ...own, reason: 'replay' }), 0)
    assert.ok((value(text, 'tor_agent_onion_intro_circuits', own) ?? 0) >= 1, text)
    assert.equal(value(text, 'tor_agent_tor_metrics_errors_total', { source: 'metrics' }), 0)
    if (prometheusMissing() === undefined) checkMetrics(text)
  })
})
