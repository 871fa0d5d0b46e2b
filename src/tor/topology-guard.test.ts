import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PosternError } from '../core/errors.ts'
import type { TorTopology, WatchPlan } from './contract.ts'
import { parseTopology } from './topology-guard.ts'

const ADDRESS = `${'a'.repeat(55)}d`
const OTHER = `${'b'.repeat(55)}d`

function valid(): TorTopology {
  return {
    version: 1,
    daemon: {
      name: 'tor',
      namespace: 'shop',
      logLevel: 'notice',
      memoryLimit: 1 << 28,
      options: { A: 'b\nc' },
    },
    onions: [
      {
        name: 'web',
        address: ADDRESS,
        since: 5,
        ports: [{ virtualPort: 80, endpoints: [{ host: '10.0.0.1', port: 8080 }] }],
      },
    ],
    proxies: [{ name: 'out', targets: [{ name: 't', onion: `${OTHER}.onion`, port: 80, listenPort: 1080 }] }],
  }
}

test('a valid document comes back as it is, without what is not known', () => {
  assert.deepEqual(parseTopology(JSON.stringify(valid())), valid())
  assert.deepEqual(parseTopology(JSON.stringify({ ...valid(), later: 1 })), valid())
})

test('bridges are a transport by name', () => {
  const topology = valid()
  topology.daemon.bridges = { transport: 'obfs4' }
  assert.deepEqual(parseTopology(JSON.stringify(topology)), topology)
})

test('addresses are told only where that is said outright', () => {
  const topology = valid()
  topology.daemon.metrics = { addresses: true }
  assert.deepEqual(parseTopology(JSON.stringify(topology)), topology)
  for (const addresses of [false, 'true', 1, null]) {
    const daemon = { ...topology.daemon, metrics: { addresses } }
    assert.deepEqual(parseTopology(JSON.stringify({ ...topology, daemon })).daemon.metrics, {})
  }
})

test('ports for workloads say where they lead', () => {
  const topology = valid()
  topology.daemon.access = { socks: { port: 9050, exit: 'Onions' }, httpConnect: { port: 8118, exit: 'All' } }
  assert.deepEqual(parseTopology(JSON.stringify(topology)), topology)
})

const WATCHED: WatchPlan = { namespace: 'shop', name: 'web', address: ADDRESS, port: 80, every: 300 }

test('numbers that ask for something anew, and onions to look at, come back as they are', () => {
  const topology = valid()
  topology.daemon.restarts = 2
  topology.daemon.freshCircuits = 1
  topology.onions[0]!.renewal = 3
  topology.watch = [
    WATCHED,
    { ...WATCHED, namespace: 'other', private: true, http: { path: '/up?a=b' }, every: 10 },
  ]
  assert.deepEqual(parseTopology(JSON.stringify(topology)), topology)
})

const watch =
  (more: object): Change =>
  (t) => ({ ...t, watch: [{ ...WATCHED, ...more }] })

type Change = (topology: TorTopology) => unknown
const refused: [name: string, change: Change, says: RegExp][] = [
  [
    'an onion to look at without a namespace',
    watch({ namespace: undefined }),
    /watch\[0\]\.namespace is not a text/,
  ],
  ['one with no address', watch({ address: 'x' }), /watch\[0\]\.address/],
  ['one with no port', watch({ port: 0 }), /watch\[0\]\.port/],
  ['one that is looked at all the time', watch({ every: 1 }), /watch\[0\]\.every/],
  ['a path that is two lines', watch({ http: { path: '/a\r\nHost: b' } }), /watch\[0\]\.http\.path/],
  ['a path that is none', watch({ http: { path: 'a' } }), /watch\[0\]\.http\.path/],
  ['one twice', (t) => ({ ...t, watch: [WATCHED, WATCHED] }), /watch\[1\]\.name is the same/],
  [
    'more to look at than one can',
    (t) => ({ ...t, watch: Array.from({ length: 1_001 }, (_, i) => ({ ...WATCHED, name: `n-${i}` })) }),
    /watch has more than 1000/,
  ],
  [
    'a number of restarts that is none',
    (t) => ({ ...t, daemon: { ...t.daemon, restarts: -1 } }),
    /daemon\.restarts/,
  ],
  [
    'a renewal that is none',
    (t) => ({ ...t, onions: [{ ...t.onions[0], renewal: '1' }] }),
    /onions\[0\]\.renewal/,
  ],
  ['no object', () => [], /the document is not an object/],
  ['no daemon', (t) => ({ ...t, daemon: undefined }), /daemon is not an object/],
  [
    'wrong option',
    (t) => ({ ...t, daemon: { ...t.daemon, options: { 'a b': '' } } }),
    /daemon\.options\.a b/,
  ],
  [
    'bridges that are no object',
    (t) => ({ ...t, daemon: { ...t.daemon, bridges: 'obfs4' } }),
    /daemon\.bridges is/,
  ],
  [
    'a transport that would be more of a line',
    (t) => ({ ...t, daemon: { ...t.daemon, bridges: { transport: 'obfs4 exec /bin/sh' } } }),
    /daemon\.bridges\.transport is not the name/,
  ],
  [
    'metrics that are no object',
    (t) => ({ ...t, daemon: { ...t.daemon, metrics: true } }),
    /daemon\.metrics is not an object/,
  ],
  [
    'a port for workloads without a word on where it leads',
    (t) => ({ ...t, daemon: { ...t.daemon, access: { socks: { port: 9050 } } } }),
    /daemon\.access\.socks\.exit is neither Onions nor All/,
  ],
  [
    'a port for workloads that is a whole line',
    (t) => ({
      ...t,
      daemon: { ...t.daemon, access: { httpConnect: { port: '8118 NoIsolateClientAddr', exit: 'All' } } },
    }),
    /daemon\.access\.httpConnect\.port/,
  ],
  [
    'one port for both',
    (t) => {
      const one = { port: 9050, exit: 'All' }
      return { ...t, daemon: { ...t.daemon, access: { socks: one, httpConnect: one } } }
    },
    /daemon\.access\[1\]\.port is the same/,
  ],
  ['an address with .onion', (t) => edit(t, { address: `${ADDRESS}.onion` }), /onions\[0\]\.address/],
  ['an upper-case address', (t) => edit(t, { address: ADDRESS.toUpperCase() }), /onions\[0\]\.address/],
  ['no ports', (t) => edit(t, { ports: [] }), /onions\[0\]\.ports is empty/],
  ['port 0', (t) => edit(t, { ports: [{ virtualPort: 0, endpoints: [] }] }), /ports\[0\]\.virtualPort/],
  [
    'a port twice',
    (t) => edit(t, { ports: [80, 80].map((virtualPort) => ({ virtualPort, endpoints: [] })) }),
    /ports\[1\]\.virtualPort is the same/,
  ],
  [
    'a host name',
    (t) => edit(t, { ports: [{ virtualPort: 1, endpoints: [{ host: 'db', port: 1 }] }] }),
    /endpoints\[0\]\.host is not an IP address/,
  ],
  ['a path as name', (t) => edit(t, { name: '../x' }), /onions\[0\]\.name/],
  [
    'a name twice',
    (t) => ({ ...t, onions: [...t.onions, { ...t.onions[0]!, address: OTHER }] }),
    /\[1\]\.name/,
  ],
  [
    'an address twice',
    (t) => ({ ...t, onions: [...t.onions, { ...t.onions[0]!, name: 'b' }] }),
    /\[1\]\.address/,
  ],
  [
    'a foreign target',
    (t) => ({
      ...t,
      proxies: [{ name: 'p', targets: [{ ...t.proxies[0]!.targets[0]!, onion: 'example.com' }] }],
    }),
    /proxies\[0\]\.targets\[0\]\.onion/,
  ],
]

function edit(topology: TorTopology, change: object): unknown {
  return { ...topology, onions: [{ ...topology.onions[0], ...change }] }
}

for (const [name, change, says] of refused) {
  test(`refuses ${name}`, () => {
    assert.throws(
      () => parseTopology(JSON.stringify(change(valid()))),
      (error: PosternError) => {
        assert.equal(error.code, 'TopologyInvalid')
        assert.match(error.message, says)
        return true
      },
    )
  })
}

test('refuses a half-written document and a newer version', () => {
  const text = JSON.stringify(valid())
  assert.throws(() => parseTopology(text.slice(0, -10)), { code: 'TopologyInvalid' })
  assert.throws(() => parseTopology(''), { code: 'TopologyInvalid' })
  assert.throws(() => parseTopology(JSON.stringify({ ...valid(), version: 2 })), {
    code: 'TopologyVersionUnsupported',
  })
})

test('whatever comes, it is a topology or a PosternError', () => {
  const nearly = fc.record({
    version: fc.constant(1),
    daemon: fc.constant(valid().daemon),
    onions: fc.oneof(fc.jsonValue(), fc.array(fc.record({ name: fc.jsonValue(), ports: fc.jsonValue() }))),
    proxies: fc.jsonValue(),
  })
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        nearly.map((value) => JSON.stringify(value)),
      ),
      (text) => {
        try {
          parseTopology(text)
        } catch (error) {
          assert.ok(error instanceof PosternError, String(error))
        }
      },
    ),
  )
})
