import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Pod, Service } from '../../cluster/kinds.ts'
import type { Plan } from '../../controller/plan.ts'
import { findCondition } from '../../core/conditions.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import type { AccessState } from '../contract.ts'
import { parseTopology } from '../topology-guard.ts'
import type { Observed } from './observed.ts'
import { plan } from './plan.ts'
import { condition, DAEMON, NOW, observed, proxy, reportOf, SETTINGS } from './plan-fixture.ts'

type Spec = NonNullable<TorDaemon['spec']>

const withSpec = (spec: Spec): TorDaemon => ({ ...DAEMON, spec })
const BOTH: Spec = { socks: {}, httpConnect: {} }

function world(spec: Spec, more: Partial<Observed> = {}): Observed {
  return observed({ object: withSpec(spec), ...more })
}

function told(spec: Spec, access: AccessState[] | undefined, more: Partial<Observed> = {}): Observed {
  const report = { ...reportOf([]), ...(access === undefined ? {} : { access }) }
  return world(spec, { view: { report }, ...more })
}

const services = (result: Plan): Service[] =>
  result.apply.filter(({ kind }) => kind === 'Service') as Service[]
const named = (result: Plan, name: string): Service | undefined =>
  services(result).find(({ metadata }) => metadata.name === name)
const document = (result: Plan) => {
  const map = result.apply.find(({ kind }) => kind === 'ConfigMap')
  return parseTopology((map!.data as Record<string, string>)['topology.json']!)
}

describe('ports for workloads', () => {
  test('are none unless they are asked for', () => {
    const result = plan(world({}), NOW)
    assert.deepEqual(
      services(result).map(({ metadata }) => metadata.name),
      ['tor-metrics'],
    )
    assert.equal('access' in document(result).daemon, false)
    const status = result.status[0]!.status as { conditions: never[] }
    assert.equal(findCondition(status.conditions, 'AccessReady'), undefined)
  })

  test('are for onions alone, and have Services that go with the daemon', () => {
    const result = plan(world(BOTH), NOW)
    assert.deepEqual(document(result).daemon.access, {
      socks: { port: 9050, exit: 'Onions' },
      httpConnect: { port: 8118, exit: 'Onions' },
    })
    assert.deepEqual(named(result, 'tor-socks')?.spec, {
      selector: { 'app.kubernetes.io/name': 'tor', 'app.kubernetes.io/instance': 'tor' },
      ports: [{ name: 'socks', port: 9050, targetPort: 9050, protocol: 'TCP' }],
    })
    assert.deepEqual(named(result, 'tor-connect')?.spec?.ports, [
      { name: 'http-connect', port: 8118, targetPort: 8118, protocol: 'TCP' },
    ])
    for (const name of ['tor-socks', 'tor-connect']) {
      assert.equal(named(result, name)?.metadata.ownerReferences?.[0]?.uid, 'uid-tor')
    }
  })

  test('go where they are told, and one without the other', () => {
    const result = plan(world({ httpConnect: { port: 3128, exit: 'All' } }), NOW)
    assert.deepEqual(document(result).daemon.access, { httpConnect: { port: 3128, exit: 'All' } })
    assert.equal(named(result, 'tor-socks'), undefined)
  })

  test('have names that fit, with the longest name of a daemon', () => {
    const name = 'd'.repeat(55)
    const object = { ...withSpec(BOTH), metadata: { ...DAEMON.metadata, name } }
    const result = plan(observed({ daemon: { namespace: 'default', name }, object }), NOW)
    for (const { metadata } of services(result)) assert.ok(metadata.name.length <= 63, metadata.name)
    assert.equal(services(result).length, 3)
  })

  test('lose their Services with the wish; those of proxies stay', () => {
    const before = plan(world(BOTH, { proxies: [{ object: proxy('irc', [6667]) }] }), NOW)
    const made = services(before)
      .filter(({ metadata }) => metadata.name !== 'tor-metrics')
      .map((service) => ({
        ...service,
        metadata: { ...service.metadata, uid: `uid-${service.metadata.name}` },
      }))
    const after = plan(
      world({ socks: {} }, { proxies: [{ object: proxy('irc', [6667]) }], services: made }),
      NOW,
    )
    assert.deepEqual(
      after.remove.map(({ kind, name, uid }) => `${kind} ${name} ${uid}`),
      ['Service tor-connect uid-tor-connect'],
    )
  })
})

describe('what a daemon listens on itself', () => {
  test('no proxy gets, however old, and it is told by whom', () => {
    const irc = proxy('irc', [9050, 6667, 8118], '2020-01-01T00:00:00Z')
    const result = plan(told(BOTH, undefined, { proxies: [{ object: irc }] }), NOW)
    assert.deepEqual(
      document(result).proxies[0]!.targets.map(({ listenPort }) => listenPort),
      [6667],
    )
    const ports = condition(result, 'irc', 'PortsAccepted')
    assert.equal(`${ports.status} ${ports.reason}`, 'False PortTaken')
    assert.match(
      ports.message,
      /target t9050: spec\.socks of the TorDaemon has listenPort 9050 .*; target t8118: spec\.httpConnect of/,
    )
  })

  test('a proxy of the name of its Service makes room', () => {
    const object = proxy('tor-socks', [6667])
    const [service] = services(plan(world({}, { proxies: [{ object }] }), NOW)).filter(
      ({ metadata }) => metadata.name === 'tor-socks',
    )
    const made = { ...service!, metadata: { ...service!.metadata, uid: 'uid-old' } }
    const result = plan(
      told({ socks: {} }, undefined, { proxies: [{ object, service: made }], services: [made] }),
      NOW,
    )
    assert.equal(condition(result, 'tor-socks', 'PortsAccepted').reason, 'ServiceNameTaken')
    // Of the two objects of this name, what goes is the proxy's.
    assert.deepEqual(
      result.remove.map(({ uid }) => uid),
      ['uid-old'],
    )
    assert.equal(named(result, 'tor-socks')?.metadata.ownerReferences?.[0]?.uid, 'uid-tor')
  })
})

test('only pods of the same namespace come in', () => {
  const settings = { ...SETTINGS, networkPolicies: true }
  const of = (spec: Spec): { from?: object[]; ports: { port: number }[] }[] => {
    const result = plan(world(spec, { settings }), NOW)
    const policy = result.apply.find(({ kind }) => kind === 'NetworkPolicy') as unknown as {
      spec: { ingress: { from?: object[]; ports: { port: number }[] }[] }
    }
    return policy.spec.ingress
  }
  assert.deepEqual(of({ socks: { port: 1080 }, httpConnect: {} }).at(-1), {
    from: [{ podSelector: {} }],
    ports: [1080, 8118].map((port) => ({ port, protocol: 'TCP' })),
  })
  assert.equal(of({}).length, 2)
})

describe('a daemon says', () => {
  test('where they are: by name in a cluster, by address on one machine', () => {
    const status = (settings: Partial<typeof SETTINGS>, pod?: Pod): Record<string, unknown> =>
      plan(
        world(BOTH, { settings: { ...SETTINGS, ...settings }, ...(pod === undefined ? {} : { pod }) }),
        NOW,
      ).status[0]!.status
    assert.equal(status({}).socks, 'tor-socks.default.svc:9050')
    assert.equal(status({}).httpConnect, 'tor-connect.default.svc:8118')
    assert.equal(status({ serviceDns: false }).socks, undefined)
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, status: { podIP: '127.77.0.3' } }
    assert.equal(status({ serviceDns: false }, pod).socks, '127.77.0.3:9050')
  })

  const open = (name: AccessState['name']): AccessState => ({ name, listening: true })
  const shut = (name: AccessState['name'], message?: string): AccessState => ({
    name,
    listening: false,
    ...(message === undefined ? {} : { message }),
  })
  const cases: [what: string, states: AccessState[] | undefined, expected: string, words: RegExp][] = [
    [
      'that both are open',
      [open('socks'), open('httpConnect')],
      'True AccessOpen',
      /SOCKS and HTTP CONNECT$/,
    ],
    ['that one is not yet', [open('socks'), shut('httpConnect')], 'Unknown Pending', /for HTTP CONNECT yet/],
    ['that an agent has not heard of them', undefined, 'Unknown Pending', /SOCKS and HTTP CONNECT yet/],
    [
      'that one cannot be',
      [shut('socks', 'tor cannot listen on 10.0.0.1:80: denied'), open('httpConnect')],
      'False ListenFailed',
      /^spec\.socks: tor cannot listen on 10\.0\.0\.1:80: denied; choose another port$/,
    ],
  ]
  for (const [what, states, expected, words] of cases) {
    test(what, () => {
      const result = plan(told(BOTH, states), NOW)
      const access = condition(result, 'tor', 'AccessReady')
      assert.equal(`${access.status} ${access.reason}`, expected)
      assert.match(access.message, words)
      assert.equal(condition(result, 'tor', 'Ready').status, access.status)
    })
  }

  test('nothing of them while its agent is silent', () => {
    const result = plan(world(BOTH), NOW)
    assert.equal(condition(result, 'tor', 'AccessReady').status, 'Unknown')
  })
})
