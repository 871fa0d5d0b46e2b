/** torrc options; a value of several lines is the same option given several times, as in a `DirAuthority` list. */
export type TorOptions = Record<string, string>

/** The text of a torrc file. Later sets win over earlier ones, option by option. */
export function torrc(...sets: TorOptions[]): string {
  const merged: TorOptions = Object.assign({}, ...sets)
  const lines = Object.entries(merged).flatMap(([key, value]) =>
    value.split('\n').map((line) => `${key} ${line}`.trimEnd()),
  )
  return `${lines.join('\n')}\n`
}

/**
 * What every member of the network shares, and all that a client or service of it needs.
 * `TestingTorNetwork` allows private addresses and sets all download delays to 0. Circuit timeouts are fixed because
 * on loopback the learned ones drift absurdly under load.
 */
export function clientOptions(dirAuthorities: readonly string[]): TorOptions {
  return {
    TestingTorNetwork: '1',
    DirAuthority: dirAuthorities.join('\n'),
    PathsNeededToBuildCircuits: '0.67',
    LearnCircuitBuildTimeout: '0',
    CircuitBuildTimeout: '10',
    ShutdownWaitLength: '0',
  }
}

/** Options of a process that this library itself starts. It ends when process `owner` is gone (tor looks now and then). */
export function processOptions(folder: string, owner: number): TorOptions {
  return {
    DataDirectory: folder,
    SocksPort: '0',
    Log: 'notice stdout',
    LogTimeGranularity: '1',
    SafeLogging: '0',
    Sandbox: '0',
    ShutdownWaitLength: '0',
    __OwningControllerProcess: String(owner),
  }
}

/**
 * A relay that nobody has to test from outside (`AssumeReachable`) and that asks no name server.
 *
 * None reports a bandwidth, so all weigh the same. Otherwise each would count by the few bytes that it has moved: one of
 * seven gets nearly all the weight, becomes guard and last hop of the same circuit, and no circuit can be built (a relay
 * refuses to extend back to the hop before) until a consensus or two later.
 */
export function relayOptions(nickname: string, address: string, orPort: number): TorOptions {
  return {
    Nickname: nickname,
    Address: address,
    ORPort: `${address}:${orPort}`,
    AssumeReachable: '1',
    TestingMinTimeToReportBandwidth: '1 day',
    ExitRelay: '0',
    ServerDNSDetectHijacking: '0',
    ServerDNSTestAddresses: '',
    ServerDNSResolvConfFile: '/dev/null',
    ContactInfo: 'postern-testbed@localhost.invalid',
  }
}

/** A relay that also goes out of the network, to wherever it is asked: for a test, that is this machine. */
export function exitOptions(nickname: string, address: string, orPort: number): TorOptions {
  return {
    ...relayOptions(nickname, address, orPort),
    ExitRelay: '1',
    ExitPolicyRejectPrivate: '0',
    // The wide one is what the rest of the network hears of.
    ExitPolicy: 'accept 127.0.0.0/8:*\naccept *:*',
  }
}

/** A relay that stands in no consensus and is reached through obfs4 on `port` of `address`. */
export function bridgeOptions(nickname: string, address: string, orPort: number, port: number): TorOptions {
  return {
    ...relayOptions(nickname, address, orPort),
    BridgeRelay: '1',
    BridgeDistribution: 'none',
    PublishServerDescriptor: '0',
    ServerTransportPlugin: 'obfs4 exec /usr/bin/obfs4proxy',
    ServerTransportListenAddr: `obfs4 ${address}:${port}`,
    ExtORPort: 'auto',
  }
}

/**
 * How an authority votes: without `offset` (0..7 s, see `offsetOfFirstVote`) not for half an hour; with it, a first
 * interval of 8 s ends when the clock's seconds modulo 8 are `offset`. Later intervals are 20 s, a time period 8 minutes.
 */
export function authorityOptions(address: string, dirPort: number, offset?: number): TorOptions {
  return {
    DirPort: `${address}:${dirPort}`,
    AuthoritativeDirectory: '1',
    V3AuthoritativeDirectory: '1',
    TestingV3AuthVotingStartOffset: String(offset ?? 0),
    TestingV3AuthInitialVotingInterval: offset === undefined ? '1800' : '8',
    TestingV3AuthInitialVoteDelay: '2',
    TestingV3AuthInitialDistDelay: '2',
    V3AuthVotingInterval: '20',
    V3AuthVoteDelay: '4',
    V3AuthDistDelay: '4',
    V3AuthNIntervalsValid: '2',
    TestingDirAuthVoteExit: '*',
    TestingDirAuthVoteHSDir: '*',
    TestingDirAuthVoteGuard: '*',
    TestingMinExitFlagThreshold: '0',
  }
}
