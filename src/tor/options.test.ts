import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { REFUSED_OPTIONS, REFUSED_PREFIXES, refusedOption } from './options.ts'

const skip = existsSync('/usr/bin/tor') ? false : 'tor is not installed: apt-get install tor'

/** All options that tor has, in its own spelling. */
function torOptions(): string[] {
  const text = execFileSync('tor', ['--list-torrc-options'], { encoding: 'utf8' })
  return text.split('\n').filter((line) => /^\w+$/.test(line))
}

/** Names that sound as if they opened, wrote, read or ran something. */
const SUSPICIOUS =
  /(Port|Socket|File|Dir|Directory|Plugin|Page|GroupReadable|GroupWritable|Authentication|Attachment)$/
/** Those of them that do nothing of the kind. */
const HARMLESS = new Set([
  // Of the relays that are connected to, not of a port that is opened.
  'ClientPreferIPv6DirPort',
  'ClientPreferIPv6ORPort',
  // Addresses, and a relay's flag.
  'FallbackDir',
  'TestingDirAuthVoteHSDir',
])

test('every option of tor that opens, writes, reads or runs something is refused, with a reason', {
  skip,
}, () => {
  const names = torOptions()
  assert.ok(names.length > 300, names.join(' '))
  const open = names.filter((name) => SUSPICIOUS.test(name) && refusedOption(name) === undefined)
  assert.deepEqual(open.sort(), [...HARMLESS].sort())
})

test('what is refused is an option, so that a slip of the pen refuses nothing', { skip }, () => {
  const names = torOptions().map((name) => name.toLowerCase())
  // Of a torrc's syntax, or of tors that were compiled in another way.
  const others = new Set(['include', 'controlsocket', 'sandbox'])
  const unknown = Object.keys(REFUSED_OPTIONS).filter((name) => !names.includes(name) && !others.has(name))
  assert.deepEqual(unknown, [])
  const idle = Object.keys(REFUSED_PREFIXES).filter((one) => !names.some((name) => name.startsWith(one)))
  assert.deepEqual(idle, [])
})

test('an option is not refused for being the beginning of another', { skip }, () => {
  const refused = torOptions().filter((name) => {
    const lower = name.toLowerCase()
    const itself =
      lower in REFUSED_OPTIONS || Object.keys(REFUSED_PREFIXES).some((one) => lower.startsWith(one))
    return !itself && refusedOption(name) !== undefined
  })
  assert.deepEqual(refused, [])
})

test('what users need behind a proxy or a firewall, and for networks of their own, they may set', () => {
  const names = [
    'HTTPSProxy',
    'Socks4Proxy',
    'Socks5Proxy',
    'Socks5ProxyUsername',
    'Socks5ProxyPassword',
    'TCPProxy',
    'ReachableAddresses',
    'FascistFirewall',
    'DirAuthority',
    'AlternateDirAuthority',
    'FallbackDir',
    'EntryNodes',
    'ExitNodes',
    'HSLayer2Nodes',
    'ConnectionPadding',
    'MapAddress',
    'NumCPUs',
    'ConnLimit',
    'ClientUseIPv6',
    'DormantTimeoutEnabled',
  ]
  for (const name of names) assert.equal(refusedOption(name), undefined, name)
})

const cases: [option: string, why: RegExp][] = [
  ['ControlPortWriteToFile', /control port/],
  ['TransPort', /ports of the daemon; use spec.socks/],
  ['SocksPort', /use spec.socks/],
  ['HTTPTunnelPort', /use spec.httpConnect/],
  ['__SocksPort', /internal/],
  ['ServerTransportPlugin', /client, not a relay/],
  ['ServerTransportListenAddr', /client, not a relay/],
  ['AccelName', /load a library/],
  ['AccelDir', /load a library/],
  ['KeepBindCapabilities', /unprivileged/],
  ['GeoIPFile', /into the log/],
  ['ClientOnionAuthDir', /clientAuthSecret/],
  ['DormantOnFirstStartup', /when tor may connect/],
  ['UseEntryGuards', /give away/],
  ['VanguardsLiteEnabled', /give away/],
  ['HiddenServiceDir', /OnionService/],
  ['controlportw', /control port/],
]
for (const [option, why] of cases) {
  test(`${option} is refused`, () => assert.match(refusedOption(option) ?? 'allowed', why))
}
