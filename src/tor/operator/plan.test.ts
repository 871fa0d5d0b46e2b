import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { EndpointSlice, Secret, Service } from '../../cluster/kinds.ts'
import type { Plan } from '../../controller/plan.ts'
import type { OnionService } from '../api/onion-service.ts'
import type { TargetState } from '../contract.ts'
import { olderThan } from '../version.ts'
import { resolveBackend } from './backend.ts'
import { keySecret, keyState } from './onion-keys.ts'
import { plan } from './plan.ts'
import {
  condition,
  DAEMON,
  KEY,
  kinds,
  NOW,
  observed,
  observedOnion,
  onionService,
  proxy,
  reportOf,
  topology,
} from './plan-fixture.ts'

describe('the daemon', () => {
  test('is made when an onion needs the default one, with a key that is made once', () => {
    const web = onionService('web')
    const world = observed({ onions: [observedOnion(web, { key: keyState(web, undefined) })] })
    delete world.object
    const result = plan(world, NOW)
    assert.deepEqual(
      result.create.map((one) => `${one.kind}/${one.metadata.name}`),
      ['Secret/web-onion-key', 'TorDaemon/tor'],
    )
    assert.deepEqual(Object.keys(result.create[0]!.data as object), [
      'hs_ed25519_secret_key',
      'hs_ed25519_public_key',
      'hostname',
    ])
    assert.equal(result.create[0]!.metadata.ownerReferences, undefined)
    assert.deepEqual(result.apply, [])
    assert.equal(condition(result, 'web', 'Ready').status, 'Unknown')
  })

  test('is never made under a name that was given and does not exist', () => {
    const web = onionService('web', { daemonRef: { name: 'other' } })
    const world = observed({
      daemon: { namespace: 'default', name: 'other' },
      onions: [observedOnion(web)],
    })
    delete world.object
    const result = plan(world, NOW)
    assert.deepEqual([...result.create, ...result.apply], [])
    assert.equal(condition(result, 'web', 'Ready').reason, 'DaemonNotFound')
  })

  test('goes when it was made for others and nobody is left; a declared one stays', () => {
    const made = {
      ...DAEMON,
      metadata: { ...DAEMON.metadata, annotations: { 'tor.fr0st.dev/provisioned': 'true' } },
    }
    assert.equal(plan(observed({ object: made }), NOW).remove[0]?.kind, 'TorDaemon')
    const declared = { ...made, spec: { logLevel: 'info' } }
    assert.deepEqual(plan(observed({ object: declared }), NOW).remove, [])
  })

  test('owns its objects, and the same world gives the same objects', () => {
    const world = observed({ onions: [observedOnion(onionService('web'))] })
    const result = plan(world, NOW)
    assert.deepEqual(kinds(result), [
      'Secret/tor-keys',
      'ConfigMap/tor-topology',
      'Service/tor-metrics',
      'Deployment/tor',
    ])
    for (const object of result.apply) assert.equal(object.metadata.ownerReferences?.[0]?.uid, 'uid-tor')
    assert.deepEqual(plan(world, NOW).apply, result.apply)
  })

  test('takes its version condition from the floor', () => {
    assert.ok(olderThan('0.4.8.16', '0.4.9.11'))
    assert.ok(!olderThan('0.4.9.11', '0.4.9.11'))
    assert.ok(!olderThan('0.5.0.1-alpha', '0.4.9.11'))
  })
})

describe('an onion', () => {
  const web = onionService('web')

  test('has its address before there is a tor', () => {
    const result = plan(observed({ onions: [observedOnion(web)] }), NOW)
    const { status } = result.status.find((one) => one.ref.name === 'web')!
    assert.equal(status.hostname, `${KEY.address}.onion`)
    assert.equal(status.ready, false)
    assert.equal(condition(result, 'tor', 'TorBootstrapped').status, 'Unknown')
  })

  test('is ready once an upload is acknowledged', () => {
    const view = { report: reportOf([{ lastUpload: NOW - 1000 }]) }
    const result = plan(observed({ onions: [observedOnion(web)], view }), NOW)
    const patch = result.status.find((one) => one.ref.name === 'web')!
    assert.equal(patch.status.hostname, `${KEY.address}.onion`)
    assert.equal(patch.status.ready, true)
    assert.equal(condition(result, 'web', 'Published').reason, 'DescriptorUploaded')
    assert.equal(result.again, 3 * 3600 * 1000 - 1000)
  })

  test('is not ready once the last upload is three hours old', () => {
    const view = { report: reportOf([{ lastUpload: NOW - 3 * 3600 * 1000 }]) }
    const result = plan(observed({ onions: [observedOnion(web)], view }), NOW)
    assert.equal(condition(result, 'web', 'Published').reason, 'DescriptorExpired')
    assert.equal(condition(result, 'web', 'Ready').status, 'False')
  })

  test('is Unknown while the agent is silent, never a stale True', () => {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'tor-0' },
      status: { podIP: '127.77.0.2' },
    }
    const view = { error: 'connect ECONNREFUSED' }
    const result = plan(observed({ onions: [observedOnion(web)], view, pod }), NOW)
    const published = condition(result, 'web', 'Published')
    assert.equal(published.status, 'Unknown')
    assert.equal(published.reason, 'AgentSilent')
  })

  test('with the key of an older one is told so and not published', () => {
    const result = plan(
      observed({
        onions: [observedOnion(web, { rival: 'other/web' })],
        view: { report: reportOf([]) },
      }),
      NOW,
    )
    const key = condition(result, 'web', 'KeyValid')
    assert.equal(key.reason, 'DuplicateKey')
    assert.match(key.message, /other\/web is older/)
    assert.deepEqual(topology(result).onions, [])
    const secret = result.apply.find((one) => one.kind === 'Secret')!
    assert.ok(!Object.hasOwn(secret.data as object, 'web.key'))
  })

  test('whose Secret is missing or wrong is told what to do', () => {
    const fixed = onionService('web', { privateKeySecret: { name: 'vanity' } })
    const missing = plan(
      observed({ onions: [observedOnion(fixed, { key: keyState(fixed, undefined) })] }),
      NOW,
    )
    assert.equal(condition(missing, 'web', 'KeyValid').reason, 'KeySecretNotFound')
    assert.deepEqual(missing.create, [])
    const seed: Secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'vanity', namespace: 'default' },
      data: { hs_ed25519_secret_key: Buffer.alloc(32, 1).toString('base64') },
    }
    const short = plan(observed({ onions: [observedOnion(fixed, { key: keyState(fixed, seed) })] }), NOW)
    assert.equal(condition(short, 'web', 'KeyValid').reason, 'KeyIsSeed')
    const empty = { ...seed, data: { other: '' } }
    const none = plan(observed({ onions: [observedOnion(fixed, { key: keyState(fixed, empty) })] }), NOW)
    assert.equal(condition(none, 'web', 'KeyValid').reason, 'KeyMissing')
  })

  test('keeps its key by default, and gives it up only when told', () => {
    const kept = keySecret(onionService('web'), KEY)
    assert.equal(kept.metadata.ownerReferences, undefined)
    const loose = onionService('web', { keyRetention: 'Delete' })
    assert.equal(keySecret(loose, KEY).metadata.ownerReferences, undefined)
    const secret = kept as Secret
    const key = keyState(loose, secret)
    const result = plan(observed({ onions: [observedOnion(loose, { key })] }), NOW)
    const change = result.apply.find((one) => one.metadata.name === 'web-onion-key')
    assert.equal(change?.metadata.ownerReferences?.[0]?.uid, 'uid-web')
    assert.deepEqual(change?.data, secret.data)
  })

  test('a transition is an event once', () => {
    const view = { report: reportOf([{ lastUpload: NOW }]) }
    const first = plan(observed({ onions: [observedOnion(web)], view }), NOW)
    assert.ok(first.notes.some((note) => note.reason === 'DescriptorUploaded' && note.type === 'Normal'))
    const settled = {
      ...web,
      status: first.status.find((one) => one.ref.name === 'web')!.status,
    } as OnionService
    const second = plan(observed({ onions: [observedOnion(settled)], view }), NOW + 1000)
    assert.deepEqual(
      second.notes.filter((note) => note.about.name === 'web'),
      [],
    )
    assert.ok(!second.status.some((one) => one.ref.name === 'web'), 'said already')
  })
})

describe('proxies', () => {
  test('the older one has the port, the other is told who', () => {
    const result = plan(
      observed({
        proxies: [
          { object: proxy('old', [6697, 7000]) },
          { object: proxy('young', [6697, 7001], '2026-01-02T00:00:00Z') },
        ],
        view: { report: reportOf([]) },
      }),
      NOW,
    )
    const lost = condition(result, 'young', 'PortsAccepted')
    assert.equal(lost.reason, 'PortTaken')
    assert.match(lost.message, /default\/old is older and has listenPort 6697/)
    const plans = topology(result).proxies
    assert.deepEqual(
      plans.map((one) => [one.name, one.targets.map((target) => target.listenPort)]),
      [
        ['old', [6697, 7000]],
        ['young', [7001]],
      ],
    )
    assert.ok(kinds(result).includes('Service/old'))
  })

  test('have a Service of their name that leads to the pod, beside that of its metrics', () => {
    // A proxy with the name of its daemon hid the daemon's metrics once.
    const result = plan(observed({ proxies: [{ object: proxy('tor', [6697]) }] }), NOW)
    const specOf = (kind: string, name: string) =>
      result.apply.find((one) => one.kind === kind && one.metadata.name === name)?.spec
    const { template } = specOf('Deployment', 'tor') as { template: { metadata: { labels: object } } }
    const services = (['tor', 'tor-metrics'] as const).map(
      (name) => specOf('Service', name) as { selector: object; ports: { port: number }[] },
    )
    assert.deepEqual(
      services.map(({ ports }) => ports.map(({ port }) => port)),
      [[6697], [9080]],
    )
    for (const { selector } of services) {
      assert.ok(Object.keys(selector).length > 0)
      assert.deepEqual({ ...template.metadata.labels, ...selector }, template.metadata.labels)
    }
  })

  test("never touch a Service that is somebody else's", () => {
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'irc', namespace: 'default' } }
    const result = plan(observed({ proxies: [{ object: proxy('irc', [6697]), service }] }), NOW)
    assert.equal(condition(result, 'irc', 'PortsAccepted').reason, 'ServiceNameTaken')
    assert.ok(!kinds(result).includes('Service/irc'))
  })

  test('are reachable when a probe says so, with the reason when it does not', () => {
    const target: TargetState = {
      proxy: 'irc',
      target: 't6697',
      listening: true,
      reachable: false,
      reason: 'DescriptorNotFound',
    }
    const run = (state: TargetState): Plan =>
      plan(
        observed({ proxies: [{ object: proxy('irc', [6697]) }], view: { report: reportOf([], [state]) } }),
        NOW,
      )
    assert.equal(condition(run(target), 'irc', 'TargetsReachable').reason, 'DescriptorNotFound')
    assert.equal(condition(run({ ...target, reachable: true }), 'irc', 'Ready').status, 'True')
    assert.equal(
      condition(run({ ...target, listening: false }), 'irc', 'PortsAccepted').reason,
      'ListenFailed',
    )
  })
})

describe('backends', () => {
  const service = (spec: Service['spec']): Service => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'default' },
    ...(spec === undefined ? {} : { spec }),
  })
  const slice = (addresses: string[], ready = true): EndpointSlice => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web' },
    endpoints: [{ addresses, conditions: { ready } }],
    ports: [{ name: 'http', port: 8080 }],
  })
  const ports = [{ name: 'http', port: 80 }]
  const backend = { service: 'web', port: 80 as number | string }
  const inCluster = { loopbackBackends: false }

  const rows: [string, Service | undefined, EndpointSlice[], unknown][] = [
    ['no Service', undefined, [], 'ServiceNotFound'],
    ['ExternalName', service({ type: 'ExternalName', externalName: 'x.org' }), [], 'ExternalNameRefused'],
    ['other port', service({ ports: [{ port: 81 }] }), [], 'PortNotFound'],
    [
      'no endpoint',
      service({ ports, clusterIP: '10.0.0.9' }),
      [slice(['10.1.1.1'], false)],
      'NoReadyEndpoints',
    ],
    ['cluster address', service({ ports, clusterIP: '10.0.0.9' }), [slice(['10.1.1.1'])], '10.0.0.9:80'],
    [
      'UDP of the same number',
      service({ ports: [{ name: 'http', port: 80, protocol: 'UDP' }] }),
      [],
      'PortNotFound',
    ],
    ['headless', service({ ports, clusterIP: 'None' }), [slice(['10.1.1.1'])], '10.1.1.1:8080'],
    ['loopback', service({ ports }), [slice(['127.0.0.1'])], 'AddressRefused'],
    ['loopback in v6', service({ ports }), [slice(['::1'])], 'AddressRefused'],
    ['metadata', service({ ports }), [slice(['169.254.169.254'])], 'AddressRefused'],
    ['link-local', service({ ports }), [slice(['fe80::1'])], 'AddressRefused'],
    ['unspecified', service({ ports }), [slice(['0.0.0.0'])], 'AddressRefused'],
    ['mapped loopback', service({ ports }), [slice(['::ffff:127.0.0.1'])], 'AddressRefused'],
  ]
  for (const [name, object, slices, expected] of rows) {
    test(name, () => {
      const result = resolveBackend(object, slices, backend, 'spec.ports[0].backend', inCluster)
      const seen = result.ok
        ? result.endpoints.map((endpoint) => `${endpoint.host}:${endpoint.port}`).join()
        : result.reason
      assert.equal(seen, expected)
    })
  }

  test('a port by its name, and loopback on one machine', () => {
    const result = resolveBackend(
      service({ ports }),
      [slice(['127.0.0.1'])],
      { service: 'web', port: 'http' },
      '',
      { loopbackBackends: true },
    )
    assert.deepEqual(result, { ok: true, endpoints: [{ host: '127.0.0.1', port: 8080 }] })
  })
})
