import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ONION_PROXY } from './onion-proxy.ts'
import { ONION_SERVICE } from './onion-service.ts'
import { TOR_DAEMON } from './tor-daemon.ts'

const ONION = 'libera75jm6of4wxpxt4aynol3xjmbtxgfyjpu34ss4d7r7q2v5zrpyd.onion'
const port = { virtualPort: 80, backend: { service: 'web', port: 80 } }

function service(spec: unknown, more: object = {}): unknown {
  return {
    apiVersion: 'tor.fr0st.dev/v1alpha1',
    kind: 'OnionService',
    metadata: { name: 'web' },
    spec,
    ...more,
  }
}

function proxy(target: object, name = 'upstreams'): unknown {
  return {
    apiVersion: 'tor.fr0st.dev/v1alpha1',
    kind: 'OnionProxy',
    metadata: { name },
    spec: { targets: [{ name: 'libera', onion: ONION, port: 6697, listenPort: 6697, ...target }] },
  }
}

function daemon(spec: unknown): unknown {
  return { apiVersion: 'tor.fr0st.dev/v1alpha1', kind: 'TorDaemon', metadata: { name: 'tor' }, spec }
}

function seen(problems: { path: (string | number)[]; message: string }[]): string[] {
  return problems.map((problem) => `${problem.path.join('.')}: ${problem.message}`)
}

test("the article's manifests are valid", () => {
  const article = { ports: [{ virtualPort: 443, backend: { service: 'my-service', port: 8443 } }] }
  assert.deepEqual(ONION_SERVICE.validate(service(article)), [])
  const fixed = { ...article, privateKeySecret: { name: 'my-onion-key' }, daemonRef: { name: 'tor' } }
  assert.deepEqual(ONION_SERVICE.validate(service(fixed)), [])
  assert.deepEqual(ONION_PROXY.validate(proxy({})), [])
  assert.deepEqual(TOR_DAEMON.validate(daemon(undefined)), [])
  const bridges = {
    transport: 'obfs4',
    seed: { name: 'tor-bridges', key: 'bridges' },
    source: { https: { url: 'https://bridges.torproject.org/bridges/en?transport=obfs4' } },
    minHealthy: 2,
    maxBridges: 6,
  }
  assert.deepEqual(TOR_DAEMON.validate(daemon({ bridges })), [])
})

const rows: [string, string[], string[]][] = [
  [
    'empty ports',
    seen(ONION_SERVICE.validate(service({ ports: [] }))),
    ['spec.ports: must have at least one port'],
  ],
  ['no ports', seen(ONION_SERVICE.validate(service({}))), ['spec.ports: is required']],
  [
    'port 0',
    seen(ONION_SERVICE.validate(service({ ports: [{ ...port, virtualPort: 0 }] }))),
    ['spec.ports.0.virtualPort: must be from 1 to 65535'],
  ],
  [
    'port 70000',
    seen(ONION_SERVICE.validate(service({ ports: [{ ...port, backend: { service: 'web', port: 70000 } }] }))),
    ['spec.ports.0.backend.port: must be from 1 to 65535'],
  ],
  [
    'two virtual ports alike',
    seen(ONION_SERVICE.validate(service({ ports: [port, port] }))),
    ['spec.ports.1.virtualPort: port 80 is there already (ports[0]); each virtualPort may stand once'],
  ],
  [
    'unknown field',
    seen(ONION_SERVICE.validate(service({ ports: [port], daemonref: { name: 'tor' } }))),
    ["spec.daemonref: unknown field; did you mean 'daemonRef'?"],
  ],
  [
    'unknown field deep down',
    seen(ONION_SERVICE.validate(service({ ports: [{ ...port, virtualport: 80 }] }))),
    ["spec.ports.0.virtualport: unknown field; did you mean 'virtualPort'?"],
  ],
  [
    'unknown field at the top',
    seen(ONION_SERVICE.validate(service({ ports: [port] }, { specs: {} }))),
    ["specs: unknown field; did you mean 'spec'?"],
  ],
  [
    'a look that is too frequent, at a page that is none',
    seen(
      ONION_SERVICE.validate(service({ ports: [port], probe: { intervalSeconds: 1, http: { path: 'x' } } })),
    ),
    [
      'spec.probe.intervalSeconds: must be a whole number from 10 to 86400',
      'spec.probe.http.path: must be a path such as /health',
    ],
  ],
  [
    'backend in another namespace',
    seen(
      ONION_SERVICE.validate(
        service({ ports: [{ ...port, backend: { service: 'web', port: 80, namespace: 'other' } }] }),
      ),
    ),
    [
      'spec.ports.0.backend.namespace: a backend in another namespace is not possible; publish the onion in the namespace of the Service',
    ],
  ],
  [
    'a name too long for a Service',
    seen(ONION_PROXY.validate(proxy({}, 'a'.repeat(64)))),
    ['metadata.name: must be at most 63 characters, since it names the Service of this proxy'],
  ],
  [
    'bridges',
    seen(TOR_DAEMON.validate(daemon({ bridges: { transport: 'obfs4' } }))),
    ['spec.bridges: must have a seed, a source, or both: without a bridge the daemon never connects'],
  ],
  [
    'an option that is ours',
    seen(TOR_DAEMON.validate(daemon({ options: { SocksPort: '9050' } }))),
    ['spec.options.SocksPort: may not be set here: Postern owns the SOCKS ports; use spec.socks'],
  ],
  [
    'a port that the daemon uses',
    seen(ONION_PROXY.validate(proxy({ listenPort: 9080 }))),
    ['spec.targets.0.listenPort: must not be one of 9080 and 9081, which the daemon uses itself'],
  ],
]

for (const [name, problems, expected] of rows) {
  test(name, () => assert.deepEqual(problems, expected))
}

test('an onion address with a wrong checksum, of v2, or none at all', () => {
  const wrong = `${ONION.slice(0, 10)}a${ONION.slice(11)}`
  for (const [onion, says] of [
    [wrong, /checksum .* does not fit/],
    ['expyuzz4wqqyqhjn.onion', /version 2/],
    ['example.org', /not an onion address/],
  ] as const) {
    const problems = ONION_PROXY.validate(proxy({ onion }))
    assert.equal(problems.length, 1, onion)
    assert.deepEqual(problems[0]!.path, ['spec', 'targets', 0, 'onion'])
    assert.match(problems[0]!.message, says)
  }
})
