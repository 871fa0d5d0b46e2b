import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settingsDiff } from './live-settings.ts'
import { managedSettings, quoteValue, torPaths, torrc, userSettings } from './torrc.ts'

const daemon = { name: 'tor', namespace: 'shop', logLevel: 'notice', options: {} }
const paths = torPaths('/data', '/run/p')

test('the torrc keeps tor off the network, in the hands of its agent, and quiet', () => {
  assert.equal(
    torrc(daemon, [], paths, 42),
    `DataDirectory /data/tor
DisableNetwork 1
ControlPort unix:/run/p/control
CookieAuthentication 1
SocksPort unix:/run/p/socks
SocksPort unix:/run/p/socks-x ExtendedErrors
SafeLogging 1
AvoidDiskWrites 1
DormantTimeoutEnabled 0
DormantCanceledByStartup 1
ClientOnly 1
__OwningControllerProcess 42
Log notice stdout
`,
  )
})

test("memory bounds tor's queues, and never below 64 MiB", () => {
  const of = (memoryLimit: number) => managedSettings({ ...daemon, memoryLimit })[1]
  assert.deepEqual(of(1_000_000_000), ['MaxMemInQueues', ['400000000 bytes']])
  assert.deepEqual(of(1000), ['MaxMemInQueues', ['67108864 bytes']])
  assert.equal(managedSettings(daemon).length, 1)
})

test('an unknown log level is notice', () => {
  assert.deepEqual(managedSettings({ ...daemon, logLevel: 'loud stdout\nUser root' })[0], [
    'Log',
    ['notice stdout'],
  ])
})

test('several lines are the option several times; what would take tor away is left out', () => {
  const { settings, refused } = userSettings({
    DirAuthority: 'a 1\n  b 2 \n\n',
    NumCPUs: '1',
    ControlPort: '9051',
    SafeLogging: '0',
    clientonly: '0',
    __DisableSignalHandlers: '1',
    HiddenServiceDir: '/x',
    HiddenServ: '/x',
    usebridges: '0',
    Bridge: '192.0.2.1:443',
    Bridg: '192.0.2.1:443',
    DisableNetwor: '0',
    Empty: '',
  })
  assert.deepEqual(settings, [
    ['DirAuthority', ['a 1', 'b 2']],
    ['NumCPUs', ['1']],
  ])
  assert.equal(refused.length, 10)
  assert.match(torrc(daemon, settings, paths, 1), /\nDirAuthority a 1\nDirAuthority b 2\nNumCPUs 1\n$/)
})

test('a user may set what is only a default here, once', () => {
  const { settings } = userSettings({ DormantTimeoutEnabled: '1' })
  assert.deepEqual(torrc(daemon, settings, paths, 1).match(/DormantTimeoutEnabled.*/g), [
    'DormantTimeoutEnabled 1',
  ])
})

const quoted: [value: string, text: string][] = [
  ['plain words 1,2', 'plain words 1,2'],
  ['with "quotes" inside', 'with "quotes" inside'],
  ['"starts', '"\\"starts"'],
  ['has # in it', '"has # in it"'],
  ['ends\\', '"ends\\\\"'],
  [' blank', '" blank"'],
  ['ü', '"\\303\\274"'],
  ['a\tb', '"a\\011b"'],
  ['', '""'],
]
for (const [value, text] of quoted) {
  test(`quotes ${JSON.stringify(value)}`, () => assert.equal(quoteValue(value), text))
}

test('only what changed is sent, without regard to case', () => {
  assert.deepEqual(
    settingsDiff(
      [
        ['Log', ['notice stdout']],
        ['A', ['1', '2']],
        ['Gone', ['1']],
      ],
      [
        ['log', ['notice stdout']],
        ['A', ['2', '1']],
        ['New', ['1']],
      ],
    ),
    {
      set: [
        ['A', ['2', '1']],
        ['New', ['1']],
      ],
      reset: ['Gone'],
    },
  )
})
