import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { generate } from '../scripts/generate/main.ts'
import { TOR_PERMISSIONS } from '../src/tor/operator/permissions.ts'
import { helm, kubectl } from '../testbed/kubernetes/kubectl.ts'

/** Both ways to install, rendered by the tools that users have, and compared. */

const ROOT = realpathSync(join(import.meta.dirname, '..'))
const CHART = join(ROOT, 'charts/postern')
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'postern-install-')))
after(() => rmSync(folder, { recursive: true, force: true }))
/** Rendering needs no cluster. */
const none = { kubeconfig: join(folder, 'no-kubeconfig') }

interface Installed {
  apiVersion: string
  kind: string
  metadata: {
    name: string
    namespace?: string
    labels?: Record<string, string>
    annotations?: Record<string, string>
  }
  spec?: unknown
  rules?: { apiGroups: string[]; resources: string[]; verbs: string[] }[]
}

interface PodSpec {
  containers: [Container]
  [field: string]: unknown
}

interface Container {
  image: string
  args: string[]
  env: { name: string; value?: string }[]
  resources: unknown
}

function read(text: string): Installed[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Installed | null)
    .filter((object) => object !== null)
}

/** What `kubectl apply -k` would apply of deploy/ with components. */
async function kustomized(...components: string[]): Promise<Installed[]> {
  const overlay = mkdtempSync(join(folder, 'overlay-'))
  const path = (name: string): string => relative(overlay, join(ROOT, 'deploy', name))
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: [path('.')],
    components: components.map((name) => path(`components/${name}`)),
  }
  writeFileSync(join(overlay, 'kustomization.yaml'), JSON.stringify(kustomization))
  return read(await kubectl(['kustomize', overlay], none))
}

async function templated(values: object = {}): Promise<Installed[]> {
  const file = join(mkdtempSync(join(folder, 'values-')), 'values.yaml')
  writeFileSync(file, JSON.stringify(values))
  const args = ['template', 'postern', CHART, '--namespace', 'postern-system', '--values', file]
  return read(await helm(args, none))
}

/** Objects by their names, without what only a chart adds and the Namespace that only `deploy/` makes. */
function comparable(objects: Installed[]): Record<string, Installed> {
  const out: Record<string, Installed> = {}
  for (const object of structuredClone(objects)) {
    const { kind, metadata } = object
    if (kind === 'Namespace') continue
    const labels = ['helm.sh/chart', 'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by']
    for (const label of labels) delete metadata.labels?.[label]
    delete metadata.annotations?.['helm.sh/resource-policy']
    if (Object.keys(metadata.annotations ?? {}).length === 0) delete metadata.annotations
    // A CustomResourceDefinition of `deploy/` has no labels of the release.
    if (kind === 'CustomResourceDefinition') delete metadata.labels
    const key = `${kind} ${metadata.namespace ?? ''}/${metadata.name}`
    assert.equal(out[key], undefined, `${key} is there twice`)
    out[key] = object
  }
  return out
}

function same(chart: Installed[], deploy: Installed[]): void {
  const [left, right] = [comparable(chart), comparable(deploy)]
  assert.deepEqual(Object.keys(left).sort(), Object.keys(right).sort())
  for (const [key, object] of Object.entries(left)) assert.deepEqual(object, right[key], key)
}

function podOf(objects: Installed[]): PodSpec {
  const deployment = objects.find(({ kind }) => kind === 'Deployment') as unknown as {
    spec: { template: { spec: PodSpec } }
  }
  return deployment.spec.template.spec
}

function variableOf(container: Container, variable: string): string | undefined {
  return container.env.find(({ name }) => name === variable)?.value
}

test('what is committed is what the sources give', () => {
  assert.deepEqual(generate(true), [])
})

test('the chart and deploy/ install the same objects', async () => {
  const deploy = await kustomized()
  same(await templated(), deploy)
  const kinds = deploy.map(({ kind }) => kind)
  for (const kind of ['Namespace', 'Deployment', 'ClusterRole', 'PodDisruptionBudget', 'ServiceAccount']) {
    assert.ok(kinds.includes(kind), `${kind} of ${kinds.join(', ')}`)
  }
  assert.equal(kinds.filter((kind) => kind === 'CustomResourceDefinition').length, 3)
})

test('the same with monitoring and a network policy', async () => {
  const enabled = { enabled: true }
  const values = {
    metrics: { serviceMonitor: enabled, podMonitor: enabled, prometheusRule: enabled, dashboard: enabled },
    networkPolicy: enabled,
  }
  const deploy = await kustomized('prometheus', 'networkpolicy')
  same(await templated(values), deploy)
  const monitor = deploy.find(({ kind }) => kind === 'PodMonitor')
  // Of existing users: any other selector would lose their daemons.
  assert.deepEqual(monitor?.spec, {
    namespaceSelector: { any: true },
    selector: { matchLabels: { 'app.kubernetes.io/managed-by': 'tor-operator' } },
    podMetricsEndpoints: [{ port: 'metrics', path: '/metrics', interval: '30s' }],
  })
})

test('daemons are scraped by their Services instead', async () => {
  const enabled = { enabled: true }
  const metrics = { serviceMonitor: enabled, prometheusRule: enabled, dashboard: enabled }
  const deploy = await kustomized('prometheus', 'prometheus-services')
  same(await templated({ metrics: { ...metrics, daemonServiceMonitor: enabled } }), deploy)
  assert.equal(deploy.filter(({ kind }) => kind === 'ServiceMonitor').length, 2)
  const both = { podMonitor: enabled, daemonServiceMonitor: enabled }
  await assert.rejects(templated({ metrics: both }), /counted twice/)
})

test('a namespaced installation has Roles only, and the same in both', async () => {
  const deploy = await kustomized('namespaced')
  same((await templated({ namespaces: ['default'] })).map(argsSorted), deploy.map(argsSorted))
  assert.deepEqual(
    deploy.filter(({ kind }) => kind.startsWith('ClusterRole')),
    [],
  )
  const two = await templated({ namespaces: ['one', 'two'], crds: { install: false } })
  const roles = two.filter(({ kind, metadata }) => kind === 'Role' && metadata.name === 'postern-tor')
  assert.deepEqual(
    roles.map(({ metadata }) => metadata.namespace),
    ['one', 'two'],
  )
  // Somebody who rules only these namespaces can install it.
  assert.deepEqual(
    two.filter(({ metadata }) => metadata.namespace === undefined).map(({ kind }) => kind),
    [],
  )
  assert.ok(podOf(two).containers[0].args.includes('--namespaces=one,two'))
})

/** A patch appends its argument where a template puts it in its place: the order of arguments does not count. */
function argsSorted(object: Installed): Installed {
  if (object.kind === 'Deployment') podOf([object]).containers[0].args.sort()
  return object
}

test('roles hold what the controller says, without a wildcard', async () => {
  const roles = (await kustomized('namespaced')).concat(await kustomized())
  for (const { kind, metadata, rules = [] } of roles) {
    for (const rule of rules) {
      const words = [...rule.apiGroups, ...rule.resources, ...rule.verbs]
      assert.ok(
        !words.some((word) => word.includes('*')),
        `${kind} ${metadata.name}: ${JSON.stringify(rule)}`,
      )
    }
  }
  const expected = TOR_PERMISSIONS.map(({ reason: _, ...rule }) => rule)
  const found = roles.filter(({ metadata, rules }) => metadata.name === 'postern-tor' && rules !== undefined)
  assert.deepEqual(
    found.map(({ kind }) => kind),
    ['Role', 'ClusterRole'],
  )
  for (const { kind, rules = [] } of found) {
    // CRDs are of no namespace: only a ClusterRole can allow to look at them, by their names.
    const crds = {
      apiGroups: ['apiextensions.k8s.io'],
      resources: ['customresourcedefinitions'],
      verbs: ['get'],
    }
    const last = rules.at(-1)
    if (kind === 'ClusterRole')
      assert.deepEqual({ ...last, resourceNames: undefined }, { ...crds, resourceNames: undefined })
    assert.deepEqual(kind === 'ClusterRole' ? rules.slice(0, -1) : rules, expected)
  }
})

test('images of a registry reach the operator and, through it, the daemons', async () => {
  const digest = `sha256:${'a'.repeat(64)}`
  const image = {
    registry: 'registry.example:5000',
    repository: 'doors/postern',
    digest,
    pullPolicy: 'Always',
  }
  const torImage = { registry: 'registry.example:5000', repository: 'doors/postern-tor', tag: 'v9' }
  const [container] = podOf(await templated({ image, torImage })).containers
  assert.equal(container.image, `registry.example:5000/doors/postern@${digest}`)
  assert.equal(variableOf(container, 'POSTERN_TOR_IMAGE'), 'registry.example:5000/doors/postern-tor:v9')

  const copy = mkdtempSync(join(folder, 'images-'))
  const path = (name: string): string => relative(copy, join(ROOT, 'deploy', name))
  writeFileSync(join(copy, 'images.yaml'), readFileSync(join(ROOT, 'deploy/images.yaml')))
  writeFileSync(
    join(copy, 'kustomization.yaml'),
    JSON.stringify({
      apiVersion: 'kustomize.config.k8s.io/v1beta1',
      kind: 'Kustomization',
      resources: [path('base')],
      configurations: ['images.yaml'],
      images: [
        { name: 'postern', newName: 'registry.example/postern' },
        { name: 'postern-tor', newName: 'registry.example/postern-tor', newTag: '9' },
      ],
    }),
  )
  const [other] = podOf(read(await kubectl(['kustomize', copy], none))).containers
  assert.match(other.image, /^registry\.example\/postern:\d/)
  assert.equal(variableOf(other, 'POSTERN_TOR_IMAGE'), 'registry.example/postern-tor:9')
})

test('what else a value can say reaches its place', async () => {
  const tolerations = [{ key: 'tor', operator: 'Exists' }]
  const resources = { requests: { cpu: '1', memory: '1Gi' }, limits: { memory: '2Gi' } }
  const affinity = { nodeAffinity: {} }
  const objects = await templated({
    replicas: 1,
    logLevel: 'debug',
    imagePullSecrets: [{ name: 'pull' }],
    nodeSelector: { disk: 'ssd' },
    tolerations,
    affinity,
    resources,
    priorityClassName: 'high',
    podAnnotations: { 'example.org/a': '1' },
    podLabels: { 'example.org/b': '2' },
    crds: { install: false },
    userRoles: false,
    metrics: {
      podMonitor: { enabled: true, interval: '1m', labels: { release: 'prometheus' } },
      prometheusRule: { enabled: true, runbooks: 'https://docs.example/runbooks' },
      dashboard: { enabled: true, labels: { board: 'yes' }, annotations: { grafana_folder: 'Tor' } },
    },
    torImage: { pullPolicy: 'Always' },
    networkPolicy: { enabled: true, apiServerPorts: [16443], daemons: false },
  })
  const pod = podOf(objects)
  assert.deepEqual(pod.imagePullSecrets, [{ name: 'pull' }])
  assert.deepEqual(pod.nodeSelector, { disk: 'ssd' })
  assert.deepEqual(pod.tolerations, tolerations)
  assert.deepEqual(pod.affinity, affinity)
  assert.equal(pod.priorityClassName, 'high')
  const [container] = pod.containers
  assert.deepEqual(container.resources, resources)
  assert.equal(variableOf(container, 'POSTERN_IMAGE_PULL_POLICY'), 'Always')
  assert.equal(variableOf(container, 'POSTERN_NETWORK_POLICIES'), 'false')
  assert.ok(container.args.includes('--log-level=debug'))
  const named = (kind: string) => objects.find((object) => object.kind === kind)
  const deployment = named('Deployment')?.spec as { replicas: number; template: Installed }
  assert.equal(deployment.replicas, 1)
  assert.equal(deployment.template.metadata.annotations?.['example.org/a'], '1')
  assert.equal(deployment.template.metadata.labels?.['example.org/b'], '2')
  assert.equal(named('PodMonitor')?.metadata.labels?.release, 'prometheus')
  assert.match(
    JSON.stringify(named('PrometheusRule')),
    /"https:\/\/docs\.example\/runbooks\/TorAgentDown\.md"/,
  )
  const board = named('ConfigMap')?.metadata
  assert.equal(board?.labels?.board, 'yes')
  assert.deepEqual(board?.annotations, { grafana_folder: 'Tor' })
  const policy = named('NetworkPolicy')?.spec as { egress: { ports: unknown }[] }
  assert.deepEqual(policy.egress[0]?.ports, [{ protocol: 'TCP', port: 16443 }])
  assert.equal(named('CustomResourceDefinition'), undefined)
  assert.deepEqual(
    objects.filter(({ kind }) => kind === 'ClusterRole').map(({ metadata }) => metadata.name),
    ['postern-tor'],
  )
})

test('helm lint has nothing to say', async () => {
  assert.match(await helm(['lint', '--strict', CHART], none), /0 chart\(s\) failed/)
})

const WRONG: [string, object, RegExp][] = [
  ['a value that does not exist', { replica: 1 }, /replica/],
  ['replicas that are no number', { replicas: 'two' }, /replicas/],
  ['a controller that does not exist', { controllers: ['door'] }, /controllers/],
  ['no controller', { controllers: [] }, /controllers/],
  ['a namespace that is no name', { namespaces: ['Team_A'] }, /namespaces/],
  ['a log level that does not exist', { logLevel: 'loud' }, /logLevel/],
  ['a digest that is none', { image: { repository: 'postern', digest: 'sha256:1' } }, /digest/],
  ['an interval that is none', { metrics: { podMonitor: { interval: 'often' } } }, /interval/],
  ['a port that is none', { networkPolicy: { apiServerPorts: [70000] } }, /apiServerPorts/],
]
for (const [name, values, expected] of WRONG) {
  test(`the chart refuses ${name}`, async () => {
    await assert.rejects(templated(values), (error: Error) => {
      assert.match(error.message, expected)
      return true
    })
  })
}
