import assert from 'node:assert/strict'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { networkPolicy } from '../src/tor/operator/companions.ts'
import { daemonLabels } from '../src/tor/operator/names.ts'
import { DAEMON, observed, SETTINGS } from '../src/tor/operator/plan-fixture.ts'
import { topologyOf } from '../src/tor/operator/topology.ts'
import { helm, kubectl } from '../testbed/kubernetes/kubectl.ts'
import { type Policy, reader } from './policies.ts'

/**
 * A namespace whose only way out is Tor, by the content of its NetworkPolicies: who may connect to whom follows from
 * them by the rules of networking.k8s.io/v1, which are worked out here for want of a network that does.
 */

const ROOT = realpathSync(join(import.meta.dirname, '..'))
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'postern-only-')))
after(() => rmSync(folder, { recursive: true, force: true }))
const none = { kubeconfig: join(folder, 'no-kubeconfig') }

/** What the component makes of a namespace. */
async function component(): Promise<Policy[]> {
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    namespace: 'shop',
    components: [relative(folder, join(ROOT, 'deploy/components/tor-only'))],
  }
  writeFileSync(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization))
  return parse(await kubectl(['kustomize', folder], none))
}

async function chart(torOnly: string[]): Promise<Policy[]> {
  const file = join(folder, 'values.yaml')
  writeFileSync(file, JSON.stringify({ networkPolicy: { torOnly } }))
  const chart = join(ROOT, 'charts/postern')
  const args = ['template', 'postern', chart, '--namespace', 'postern-system', '--values', file]
  return parse(await helm(args, none)).filter(({ metadata }) => metadata.name.startsWith('postern-tor-only'))
}

const parse = (text: string): Policy[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Policy | null)
    .filter((object) => object !== null)

/** The daemon's own, as the operator makes it. */
function daemonPolicy(): Policy {
  const object = { ...DAEMON, spec: { socks: {}, httpConnect: {} } }
  const world = observed({ daemon: { namespace: 'shop', name: 'tor' }, object })
  const settings = { ...SETTINGS, operatorNamespace: 'postern-system' }
  return networkPolicy(object, world.daemon, topologyOf(world, [], 0), settings) as unknown as Policy
}

const workload = { namespace: 'shop', labels: { app: 'web' } }
const neighbour = { namespace: 'shop', labels: { app: 'db' } }
const daemon = { namespace: 'shop', labels: daemonLabels({ namespace: 'shop', name: 'tor' }) }
const stranger = { namespace: 'elsewhere', labels: { app: 'web' } }
const dns = { namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' } }
const WEB = undefined

for (const [what, more] of [
  ["with the daemons' own policies", [daemonPolicy()]],
  ["without the daemons' own policies", []],
] as const) {
  test(`the only way out is Tor, ${what}`, async () => {
    const may = reader([...(await component()), ...more])
    assert.equal(may(workload, daemon, 9050), true, 'SOCKS')
    assert.equal(may(workload, daemon, 8118), true, 'HTTP CONNECT')
    assert.equal(may(workload, dns, 53, 'UDP'), true, 'DNS')
    assert.equal(may(workload, dns, 53), true, 'DNS by TCP')
    assert.equal(may(daemon, WEB, 9001), true, 'a relay')
    assert.equal(may(daemon, workload, 8080), true, 'the backend of an onion')
    for (const port of [80, 443, 53, 9001, 9050])
      assert.equal(may(workload, WEB, port), false, `the web ${port}`)
    assert.equal(may(workload, WEB, 53, 'UDP'), false, 'a name server of the web')
    assert.equal(may(workload, neighbour, 5432), false, 'a neighbour')
    assert.equal(may(workload, stranger, 80), false, 'another namespace')
    assert.equal(may(workload, dns, 443), false, 'the DNS server otherwise')
    assert.equal(may(workload, daemon, 9081), false, 'the report')
    assert.equal(may(workload, daemon, 9080), false, 'the metrics')
    assert.equal(may(workload, daemon, 9050, 'UDP'), false, 'UDP')
    assert.equal(may(stranger, WEB, 443), true, 'what is not of the namespace')
  })
}

test('SOCKS and HTTP CONNECT are for the pods of their namespace, by the policy of the daemon alone', () => {
  const may = reader([daemonPolicy()])
  for (const port of [9050, 8118]) {
    assert.equal(may(workload, daemon, port), true)
    assert.equal(may(stranger, daemon, port), false)
    assert.equal(may(WEB, daemon, port), false)
  }
  assert.equal(may(stranger, daemon, 9080), true, 'metrics')
  assert.equal(may(stranger, daemon, 9081), false, 'the report')
})

test('the chart makes the same in each namespace that it is told, and nothing else', async () => {
  assert.deepEqual(await chart([]), [])
  const made = await chart(['shop', 'press'])
  assert.equal(made.length, 4)
  const specs = (policies: Policy[]): unknown =>
    policies.map(({ metadata, spec }) => [metadata.name, metadata.namespace, spec])
  const of = (namespace: string): Policy[] => made.filter(({ metadata }) => metadata.namespace === namespace)
  assert.deepEqual(specs(of('shop')), specs(await component()))
  assert.equal(of('press').length, 2)
})
