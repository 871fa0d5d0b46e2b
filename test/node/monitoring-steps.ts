import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { Resource } from '../../src/core/resource.ts'
import { targetsOf } from '../monitoring/discovery.ts'
import { allHaveData } from '../monitoring/panels.ts'
import { Prometheus } from '../monitoring/prometheus.ts'
import { prometheusMissing } from '../monitoring/promtool.ts'
import { panelQueries } from '../monitoring/sources.ts'
import { CENSORED } from './bridge-steps.ts'
import * as site from './site.ts'
import { OPERATOR_NAMESPACE, type Stage } from './stage.ts'
import { OURS, type Steps } from './steps.ts'

const COMPONENTS = join(import.meta.dirname, '..', '..', 'deploy', 'components')
const GROUP = 'monitoring.coreos.com'
const DAEMONS = `${OPERATOR_NAMESPACE}/tor-operator`

/** A kind of the Prometheus operator, in name alone: what is written into it is looked at by who reads it. */
function kindObject(kind: string): object {
  const plural = `${kind.toLowerCase()}s`
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  }
}

/** Installs the component `prometheus` beside what is there, as docs/monitoring.md says. */
async function install(stage: Stage): Promise<void> {
  await stage.apply(...['PodMonitor', 'ServiceMonitor', 'PrometheusRule'].map(kindObject))
  const wait = ['wait', '--for=condition=Established', '--timeout=30s']
  await stage.kubectl([
    ...wait,
    ...['podmonitors', 'servicemonitors', 'prometheusrules'].map((one) => `crd/${one}.${GROUP}`),
  ])
  const folder = join(stage.folder, 'monitored')
  await mkdir(folder)
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: [relative(folder, stage.deployFolder)],
    components: [relative(folder, join(COMPONENTS, 'prometheus'))],
  }
  await writeFile(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization))
  await stage.kubectl(['apply', '--server-side', '-k', folder])
}

/** A real Prometheus is given the targets that the component's monitors mean. */
export function monitoringSteps({ step, stage }: Steps): void {
  step('is scraped, each pod of it, by a Prometheus at the targets of the monitors', async (t) => {
    const missing = prometheusMissing()
    if (missing !== undefined) return t.skip(missing)
    await install(stage())
    // For a Prometheus that reads no PodMonitors; here beside them, as a job of its own.
    await stage().kubectl([
      'apply',
      '--server-side',
      '-f',
      join(COMPONENTS, 'prometheus-services/monitoring.yaml'),
    ])
    const all = (kind: string): Promise<Resource[]> => stage().list(`${kind}.${GROUP}`, '-A')
    const monitors = [...(await all('podmonitors')), ...(await all('servicemonitors'))]
    assert.equal(monitors.length, 3, JSON.stringify(monitors))
    const rules = (await all('prometheusrules')).map(({ spec }) => spec as object)
    const targets = await targetsOf(monitors, stage().list)
    await using prometheus = await Prometheus.start(targets, rules)

    /** Waits until an expression has these values, by the labels that are named. */
    const says = (expression: string, wanted: Record<string, string>, ...labels: string[]): Promise<void> =>
      prometheus.until(expression, async () => {
        const found = (await prometheus.query(expression)).map(
          ({ metric, value }) => [labels.map((label) => metric[label]).join(' '), value[1]] as const,
        )
        const seen = JSON.stringify(found.sort())
        return seen === JSON.stringify(Object.entries(wanted).sort()) ? [] : [seen]
      })
    const running = async (...which: string[]): Promise<string[]> =>
      (await stage().list('pods', ...which)).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
    const up = async (job: string, pods: string[]): Promise<void> => {
      assert.ok(pods.length > 1)
      await says(
        `up{job="${job}"}`,
        Object.fromEntries(pods.map((pod) => [pod.replace('/', ' '), '1'])),
        'namespace',
        'pod',
      )
    }
    const daemons = await running('-A', '-l', OURS)
    await up(DAEMONS, daemons)
    await up('tor-operator', daemons)
    await up('postern-metrics', await running('-n', OPERATOR_NAMESPACE))

    const ours = (series: string, more = ''): string => `${series}{job="${DAEMONS}"${more}}`
    const namespaces = [...new Set(daemons.map((one) => one.split('/')[0]!))]
    const each = (value: string): Record<string, string> =>
      Object.fromEntries(namespaces.map((namespace) => [namespace, value]))
    await says(ours('tor_agent_bootstrapped'), each('1'), 'namespace')
    const onions = await stage().list('onionservices', '-A')
    const published = each('0')
    for (const { metadata } of onions) {
      published[metadata.namespace!] = String(Number(published[metadata.namespace!]) + 1)
    }
    await says(ours('tor_agent_onions_published'), published, 'namespace')
    const censored = await stage().get('tordaemon', 'tor', CENSORED)
    const [bridge] = (censored.status as { bridges: { fingerprint: string }[] }).bridges
    await says(
      ours('tor_agent_bridge_state'),
      { [`${CENSORED} ${bridge!.fingerprint}`]: '1' },
      'namespace',
      'fingerprint',
    )
    await says(
      ours('tor_agent_target_reachable'),
      { 'home upstreams lab': '1', 'home newsroom web': '1' },
      ...['namespace', 'proxy', 'target'],
    )
    // From tor's own MetricsPort, which only a pod of its own has open.
    await says(`count(${ours('tor_agent_onion_pow_effort', ',onion="newsroom"')})`, { '': '1' })

    await says('sum(postern_leader_election_master_status)', { '': '1' })
    await says('sum(postern_controller_writes_total) > bool 0', { '': '1' })
    // Here is all that there can be: bridges, daemons that look at each other, pods whose loopback is their own.
    const { hostname } = (await stage().get('onionservice', 'my-service', 'lab')).status as {
      hostname: string
    }
    let change = 0
    await allHaveData(prometheus, panelQueries(), async () => {
      // Rates tell of nothing but what happens.
      await site.visit(stage(), hostname, 443).catch(() => {})
      const annotation = `example.org/stirred=${++change}`
      await stage().kubectl(['annotate', '--overwrite', 'onionservice/my-service', '-n', 'lab', annotation])
    })
    await prometheus.until('the rules to be evaluated', async () => {
      const seen = await prometheus.rules()
      const bad = seen.filter(({ health }) => health !== 'ok').map(({ name, health }) => `${name} ${health}`)
      return seen.length === 0 ? ['no rules'] : bad
    })
  })
}
