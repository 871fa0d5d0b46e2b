import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exitCodeOf } from '../errors.ts'
import { program } from '../program.ts'
import { FLAGS, type RawSettings, type Setting } from './flags.ts'
import { readSettings } from './settings.ts'

const IMAGE = { torImage: 'registry.example:5000/postern-tor:1' }

test('what is not said has its default, and an empty variable says nothing', () => {
  const empty = Object.fromEntries(Object.keys(FLAGS).map((name) => [name, '']))
  for (const raw of [IMAGE, { ...empty, ...IMAGE }]) {
    assert.deepEqual(readSettings(raw, { POD_NAME: 'postern-0', POD_NAMESPACE: 'system' }), {
      controllers: ['tor'],
      namespaces: undefined,
      kubeconfig: undefined,
      context: undefined,
      leaderElect: true,
      leaseNamespace: 'system',
      leaseName: 'postern-operator',
      identity: 'postern-0',
      ...IMAGE,
      imagePullPolicy: undefined,
      networkPolicies: true,
      metricsAddress: { host: '0.0.0.0', port: 8080 },
      healthAddress: { host: '0.0.0.0', port: 8081 },
      logLevel: 'info',
      concurrency: 4,
      podNamespace: 'system',
    })
  }
  const outside = readSettings(IMAGE, {})
  assert.match(outside.identity, /^.+_[0-9a-f]{8}$/)
  assert.notEqual(readSettings(IMAGE, {}).identity, outside.identity)
  assert.equal(outside.leaseNamespace, undefined)
})

test('every setting is read', () => {
  const cases: [RawSettings, object][] = [
    [{ controllers: ' tor , tor' }, { controllers: ['tor'] }],
    [{ namespaces: 'a, b,a' }, { namespaces: ['a', 'b'] }],
    [
      { kubeconfig: './c', context: 'x' },
      { kubeconfig: './c', context: 'x' },
    ],
    [{ leaderElect: false }, { leaderElect: false }],
    [{ leaderElect: true }, { leaderElect: true }],
    [{ leaderElect: 'false' }, { leaderElect: false }],
    [
      { leaseNamespace: 'x', leaseName: 'a.b' },
      { leaseNamespace: 'x', leaseName: 'a.b' },
    ],
    [{ identity: 'me' }, { identity: 'me' }],
    [
      { torImage: `a/b@sha256:${'0'.repeat(64)}`, imagePullPolicy: 'Never' },
      { torImage: `a/b@sha256:${'0'.repeat(64)}`, imagePullPolicy: 'Never' },
    ],
    [{ networkPolicies: 'false' }, { networkPolicies: false }],
    [
      { metricsAddress: 'off', healthAddress: 'off' },
      { metricsAddress: undefined, healthAddress: undefined },
    ],
    [{ metricsAddress: ':9' }, { metricsAddress: { host: '0.0.0.0', port: 9 } }],
    [{ metricsAddress: '[::1]:9' }, { metricsAddress: { host: '::1', port: 9 } }],
    [{ metricsAddress: 'localhost:9' }, { metricsAddress: { host: 'localhost', port: 9 } }],
    [
      { logLevel: 'debug', concurrency: '64' },
      { logLevel: 'debug', concurrency: 64 },
    ],
  ]
  for (const [raw, expected] of cases) {
    const settings = readSettings({ ...IMAGE, ...raw }, {})
    for (const [name, value] of Object.entries(expected)) {
      assert.deepEqual(settings[name as Setting], value, JSON.stringify(raw))
    }
  }
})

test('a wrong setting is refused with flag, variable, value and remedy', () => {
  const cases: [RawSettings, RegExp][] = [
    [
      { controllers: 'tro' },
      /^--controllers \(POSTERN_CONTROLLERS\): there is no 'tro'; did you mean 'tor'\?$/,
    ],
    [{ controllers: ',' }, /^--controllers .*names nothing; there are tor$/],
    [{ controllers: 'tor,everything' }, /there is no 'everything'; there are tor$/],
    [
      { namespaces: 'ok,Not_Ok' },
      /^--namespaces \(POSTERN_NAMESPACES\): 'Not_Ok' is no name of a namespace: /,
    ],
    [
      { namespaces: Array.from({ length: 101 }, (_, i) => `n${i}`).join() },
      /name at most 100, or none for all$/,
    ],
    [{ leaderElect: 'no' }, /^--leader-elect \(POSTERN_LEADER_ELECT\): 'no' is neither true nor false$/],
    [{ leaseNamespace: 'a.b' }, /^--lease-namespace .*'a.b' is no name of a namespace/],
    [{ leaseName: '-' }, /^--lease-name .*'-' is no name of an object/],
    [{ identity: 'a b' }, /^--identity .*'a b' is no identity/],
    [{ torImage: '' }, /^--tor-image \(POSTERN_TOR_IMAGE\): is required for the controller tor: /],
    [{ torImage: 'a b' }, /^--tor-image .*'a b' is no image: as /],
    [
      { imagePullPolicy: 'Allways' },
      /^--image-pull-policy .*there is no 'Allways'; did you mean 'Always'\?$/,
    ],
    [{ networkPolicies: '1' }, /^--network-policies .*'1' is neither/],
    [{ metricsAddress: '8080' }, /^--metrics-address .*'8080' is no address: as /],
    [{ metricsAddress: '0.0.0.0:0' }, /is no address/],
    [{ metricsAddress: '999.0.0.0:80' }, /is no address/],
    [{ healthAddress: '[fe80::1:80' }, /^--health-address .*is no address/],
    [{ healthAddress: ':65536' }, /is no address/],
    [
      { healthAddress: ':8080' },
      /^--health-address .*port 8080 serves the metrics already: choose another one$/,
    ],
    [{ logLevel: 'verbose' }, /^--log-level .*there is no 'verbose'/],
    [{ concurrency: '0' }, /^--concurrency \(POSTERN_CONCURRENCY\): '0' is no whole number from 1 to 64$/],
    [{ concurrency: '65' }, /'65' is no whole number/],
    [{ concurrency: '4.5' }, /'4.5' is no whole number/],
  ]
  for (const [raw, message] of cases) {
    assert.throws(
      () => readSettings({ ...IMAGE, ...raw }, {}),
      (error: Error) => {
        assert.equal(exitCodeOf(error), 2)
        assert.match(error.message, message)
        return true
      },
      JSON.stringify(raw),
    )
  }
})

test('all that is wrong is said at once, shortened where it is long', () => {
  const raw = { controllers: 'x'.repeat(300), concurrency: 'many', logLevel: 'loud' }
  assert.throws(() => readSettings(raw, {}), {
    message: [
      '4 settings are wrong:',
      `--controllers (POSTERN_CONTROLLERS): there is no '${'x'.repeat(60)}…'; there are tor`,
      "--log-level (POSTERN_LOG_LEVEL): there is no 'loud'; there are debug, info, warn, error, silent",
      "--concurrency (POSTERN_CONCURRENCY): 'many' is no whole number from 1 to 64",
      '--tor-image (POSTERN_TOR_IMAGE): is required for the controller tor: name the image postern-tor',
    ].join('\n  '),
  })
})

test('the help names every flag with its variable, its default, and every exit code', () => {
  const command = program().commands.find((one) => one.name() === 'operator')!
  let help = ''
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp()
  const words = help.replace(/\s+/g, ' ')
  for (const { flags, env, fallback, text } of Object.values(FLAGS)) {
    assert.ok(words.includes(`${flags} ${text}`), flags)
    if (env !== undefined) assert.match(env, /^POSTERN_/)
    if (env !== undefined) assert.ok(words.includes(`env: ${env})`), env)
    if (fallback !== undefined) assert.ok(words.includes(`(default: "${fallback}", env: ${env})`), flags)
  }
  for (const flag of [
    '--no-leader-elect',
    '--no-network-policies',
    '$POD_NAME',
    '$POD_NAMESPACE',
    '$KUBECONFIG',
  ]) {
    assert.ok(words.includes(flag), flag)
  }
  for (const code of [0, 1, 2, 6]) assert.match(help, new RegExp(`^ {2}${code} {2}\\S`, 'm'))
})

test('flags win over variables, and both forms of a yes or no are read', (t) => {
  const read = (words: string[], env: Record<string, string>): RawSettings => {
    const before = { ...process.env }
    t.after(() => {
      process.env = before
    })
    Object.assign(process.env, env)
    let raw: RawSettings = {}
    const command = program().commands.find((one) => one.name() === 'operator')!
    command.action((options: RawSettings) => {
      raw = options
    })
    command.parse(words, { from: 'user' })
    process.env = before
    return raw
  }
  const both = read(['--concurrency', '7'], { POSTERN_CONCURRENCY: '9', POSTERN_LEADER_ELECT: 'false' })
  assert.equal(both.concurrency, '7')
  assert.equal(readSettings({ ...IMAGE, ...both }, {}).leaderElect, false)
  const flags = read(['--no-leader-elect', '--network-policies=false'], { POSTERN_LEADER_ELECT: 'true' })
  const settings = readSettings({ ...IMAGE, ...flags }, {})
  assert.equal(settings.leaderElect, false)
  assert.equal(settings.networkPolicies, false)
  assert.equal(readSettings({ ...IMAGE, ...read(['--leader-elect'], {}) }, {}).leaderElect, true)
})
