import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Pod } from '../../cluster/kinds.ts'
import type { Failure } from '../../controller/applier.ts'
import type { Plan } from '../../controller/plan.ts'
import type { Resource } from '../../core/resource.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import { MOUNTED_ANNOTATION } from './names.ts'
import type { Observed } from './observed.ts'
import { keyState } from './onion-keys.ts'
import { plan } from './plan.ts'
import {
  condition,
  DAEMON,
  kinds,
  NOW,
  observed,
  observedOnion,
  onionService,
  proxy,
  reportOf,
  SETTINGS,
} from './plan-fixture.ts'
import { podOf } from './world.ts'

/** What the planner does where there is a kubelet, a network and more than one node. */

const settings = {
  ...SETTINGS,
  lingerSeconds: 30,
  volumesLag: true,
  companions: true,
  networkPolicies: true,
  operatorNamespace: 'postern-system',
}

function pod(name: string, more: { ready?: boolean; ending?: boolean; mounted?: string } = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      ...(more.ending ? { deletionTimestamp: '2026-01-02T12:00:00Z' } : {}),
      ...(more.mounted === undefined ? {} : { annotations: { [MOUNTED_ANNOTATION]: more.mounted } }),
    },
    status: {
      podIP: '10.244.0.7',
      conditions: [{ type: 'Ready', status: more.ready ? 'True' : 'False' }],
    },
  }
}

function world(more: Partial<Observed> = {}): Observed {
  const pods = more.pods ?? []
  const speaker = podOf(pods)
  const onions = [observedOnion(onionService('web'))]
  return observed({ settings, onions, ...(speaker === undefined ? {} : { pod: speaker }), ...more })
}

function find(result: Plan, kind: string, name = 'tor'): Resource {
  const found = result.apply.find((one) => one.kind === kind && one.metadata.name === name)
  assert.ok(found, `no ${kind} ${name} among ${kinds(result)}`)
  return found
}

const annotation = (result: Plan, name: string): string | undefined =>
  result.apply.find((one) => one.kind === 'Pod' && one.metadata.name === name)?.metadata.annotations?.[
    MOUNTED_ANNOTATION
  ]

describe('beside a Deployment', () => {
  test('stand an account without a token, a budget that lets a drain pass, and a policy', () => {
    const result = plan(world({ proxies: [{ object: proxy('irc', [7000, 6697]) }] }), NOW)
    assert.equal(find(result, 'ServiceAccount').automountServiceAccountToken, false)
    assert.equal((find(result, 'PodDisruptionBudget').spec as { maxUnavailable: number }).maxUnavailable, 1)
    const { ingress } = find(result, 'NetworkPolicy').spec as {
      ingress: { from: { namespaceSelector: object }[]; ports: { port: number }[] }[]
    }
    assert.deepEqual(
      ingress.map(({ ports }) => ports.map(({ port }) => port)),
      [[9080], [9081], [6697, 7000]],
    )
    assert.deepEqual(ingress[1]?.from[0]?.namespaceSelector, {
      matchLabels: { 'kubernetes.io/metadata.name': 'postern-system' },
    })
    for (const object of result.apply) assert.equal(object.metadata.ownerReferences?.[0]?.controller, true)
  })

  test('stands nothing on one machine', () => {
    const result = plan(world({ settings: SETTINGS }), NOW)
    assert.deepEqual(kinds(result), [
      'Secret/tor-keys',
      'ConfigMap/tor-topology',
      'Service/tor-metrics',
      'Deployment/tor',
    ])
  })
})

describe('a pod', () => {
  const template = (daemon: TorDaemon) => {
    const spec = find(plan(world({ object: daemon }), NOW), 'Deployment').spec as {
      template: { metadata: { labels: Record<string, string> }; spec: Record<string, unknown> }
    }
    return spec.template
  }

  test('is started beside the old one, which lingers', () => {
    const { strategy } = find(plan(world(), NOW), 'Deployment').spec as { strategy: object }
    assert.deepEqual(strategy, {
      type: 'RollingUpdate',
      rollingUpdate: { maxSurge: 1, maxUnavailable: 0 },
    })
    const { spec } = template(DAEMON)
    const [container] = spec.containers as { args: string[] }[]
    assert.deepEqual(container?.args.slice(-2), ['--linger', '30'])
    assert.ok((spec.terminationGracePeriodSeconds as number) > 30)
  })

  test('is the same whatever onions and proxies there are', () => {
    const none = find(plan(world({ onions: [] }), NOW), 'Deployment')
    const some = find(plan(world({ proxies: [{ object: proxy('irc', [6697]) }] }), NOW), 'Deployment')
    assert.deepEqual(none, some)
  })

  test('takes what its user sets, and keeps what it is held to', () => {
    const daemon = {
      ...DAEMON,
      spec: {
        resources: { limits: { memory: '200Mi' } },
        podTemplate: {
          metadata: { labels: { team: 'news' }, annotations: { a: 'b' } },
          spec: { nodeSelector: { zone: 'a' }, securityContext: { runAsUser: 1234 } },
        },
      },
    } as TorDaemon
    const { metadata, spec } = template(daemon)
    assert.equal(metadata.labels.team, 'news')
    assert.equal(metadata.labels['app.kubernetes.io/name'], 'tor')
    assert.deepEqual(spec.nodeSelector, { zone: 'a' })
    assert.deepEqual(spec.securityContext, {
      runAsUser: 1234,
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    const [container] = spec.containers as { resources: object }[]
    assert.deepEqual(container?.resources, { limits: { memory: '200Mi' } })
  })

  test('runs the agent without a privilege, with folders of its own, where Prometheus finds it', () => {
    const { metadata, spec } = template(DAEMON)
    assert.equal(metadata.labels['app.kubernetes.io/managed-by'], 'tor-operator')
    const [container] = spec.containers as {
      command: string[]
      args: string[]
      ports: { name: string; containerPort: number }[]
      securityContext: object
      volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[]
    }[]
    assert.deepEqual(container!.command, ['postern-tor-agent'])
    assert.equal(container!.ports.find(({ name }) => name === 'metrics')?.containerPort, 9080)
    assert.deepEqual(container!.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    const { name } = container!.volumeMounts.find(
      ({ mountPath }) => mountPath === container!.args[container!.args.indexOf('--data') + 1],
    )!
    const volume = (spec.volumes as { name: string }[]).find((one) => one.name === name)
    assert.deepEqual(volume, { name, emptyDir: {} })
  })

  test('that is ready speaks, then one that is ending, then one that is not ready yet', () => {
    const ready = pod('ready', { ready: true })
    const ending = pod('ending', { ready: true, ending: true })
    const fresh = pod('fresh')
    assert.equal(podOf([fresh, ending, ready]), ready)
    assert.equal(podOf([fresh, ending]), ending)
    assert.equal(podOf([fresh]), fresh)
  })
})

describe('the mounts of a pod', () => {
  test('are looked at when they changed, and once more while the agent has something else', () => {
    const first = plan(world({ pods: [pod('a', { ready: true })] }), NOW)
    const mounted = annotation(first, 'a')
    assert.match(mounted ?? '', /^[0-9a-f]{16}\.0\.\d+$/)
    assert.equal(first.again, 2000)

    const view = { report: { ...reportOf([]), applied: 'something else' } }
    const pods = [pod('a', { ready: true, mounted: mounted! })]
    const early = plan(world({ pods, view }), NOW + 1500)
    assert.equal(annotation(early, 'a'), undefined)
    assert.equal(early.again, 500)
    const late = plan(world({ pods, view }), NOW + 2000)
    assert.match(annotation(late, 'a') ?? '', /\.1\.\d+$/)
    const refused = { report: { ...view.report, rejected: 'no' } }
    assert.equal(annotation(plan(world({ pods, view: refused }), NOW + 2000), 'a'), undefined)
  })

  test('are left alone in a pod that is ending', () => {
    const pods = [pod('a', { ending: true, ready: true }), pod('b')]
    const result = plan(world({ pods }), NOW)
    assert.equal(annotation(result, 'a'), undefined)
    assert.ok(annotation(result, 'b'))
  })
})

describe('a pod that is ending', () => {
  const ending = pod('old', { ending: true, ready: true })

  test('is retired once its successor is ready, not before', () => {
    assert.deepEqual(plan(world({ pods: [ending, pod('new')] }), NOW).calls, [])
    const calls = plan(world({ pods: [ending, pod('new', { ready: true })] }), NOW).calls
    assert.deepEqual(
      calls.map((call) => [call.name, call.with.name, call.with.address, call.with.daemon]),
      [['tor.retire', 'old', '10.244.0.7', 'default/tor']],
    )
  })

  test('is retired when no successor is made, as in a namespace that is being deleted', () => {
    // The API has the end of the grace there: it was told to end 30 seconds earlier.
    Object.assign(ending.metadata, { deletionGracePeriodSeconds: 30 })
    const told = NOW - 30_000
    const early = plan(world({ pods: [ending] }), told + 4_000)
    assert.deepEqual([early.calls, early.again], [[], 6_000])
    assert.equal(plan(world({ pods: [ending] }), told + 10_000).calls.length, 1)
    const waits = plan(world({ pods: [ending, pod('new')] }), told + 20_000)
    assert.deepEqual(waits.calls, [])
  })

  test('is retired when its daemon is gone', () => {
    const gone = world({ onions: [], pods: [ending] })
    delete gone.object
    assert.equal(plan(gone, NOW).calls.length, 1)
  })
})

test('a daemon that was made for others ends its onions before it goes', () => {
  const made = {
    ...DAEMON,
    metadata: { ...DAEMON.metadata, annotations: { 'tor.fr0st.dev/provisioned': 'true' } },
  }
  const busy = plan(world({ object: made, onions: [], view: { report: reportOf([{}]) } }), NOW)
  assert.deepEqual(busy.remove, [])
  assert.ok(kinds(busy).includes('ConfigMap/tor-topology'))
  const idle = plan(world({ object: made, onions: [], view: { report: reportOf([]) } }), NOW)
  assert.equal(idle.remove[0]?.kind, 'TorDaemon')
})

describe('what the cluster does not take', () => {
  const failure = (kind: string, name: string, code: string): Failure => ({
    ref: { apiVersion: 'v1', kind, namespace: 'default', name },
    code,
    message: `${kind} ${name} is there already and is not of TorDaemon tor`,
    error: undefined,
  })

  test('is named on the daemon and on its onions', () => {
    const result = plan(world({ refused: [failure('Deployment', 'tor', 'Taken')] }), NOW)
    assert.equal(condition(result, 'tor', 'TopologyApplied').reason, 'NameTaken')
    assert.equal(condition(result, 'tor', 'Ready').status, 'False')
    assert.match(condition(result, 'web', 'Published').message, /Deployment tor is there already/)
  })

  test('is named on the daemon when it is the Service of its metrics, and on the proxy when it is that of one', () => {
    const metrics = plan(world({ refused: [failure('Service', 'tor-metrics', 'Taken')] }), NOW)
    assert.match(condition(metrics, 'tor', 'TopologyApplied').message, /Service tor-metrics/)
    const refused = [failure('Service', 'irc', 'Taken')]
    const result = plan(world({ refused, proxies: [{ object: proxy('irc', [6697]) }] }), NOW)
    assert.equal(condition(result, 'tor', 'Ready').reason, 'Pending')
  })

  test('is named on the onion whose key cannot be made', () => {
    const web = onionService('web')
    const onions = [observedOnion(web, { key: keyState(web, undefined) })]
    const refused = [failure('Secret', 'web-onion-key', 'AlreadyExists')]
    const result = plan(world({ onions, refused, view: { report: reportOf([]) } }), NOW)
    assert.equal(condition(result, 'web', 'KeyValid').reason, 'NameTaken')
    assert.equal(condition(result, 'tor', 'Ready').status, 'True')
  })

  test('may pass when it is only away', () => {
    const result = plan(world({ refused: [failure('Deployment', 'tor', 'Unavailable')] }), NOW)
    assert.equal(condition(result, 'web', 'Published').reason, 'Pending')
  })
})

test('more than a daemon takes is told, and what was in force stays', () => {
  const onions = Array.from({ length: 2001 }, (_, index) => observedOnion(onionService(`web-${index}`)))
  const result = plan(world({ onions, view: { report: reportOf([]) } }), NOW)
  assert.ok(!kinds(result).includes('ConfigMap/tor-topology'))
  const { reason, message } = condition(result, 'tor', 'TopologyApplied')
  assert.equal(reason, 'TopologyTooLarge')
  assert.match(message, /2001 onions .* move some to another TorDaemon by spec.daemonRef/)
})
