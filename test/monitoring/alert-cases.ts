/** For each alert a world in which it fires, and one just short of it in which it does not. */

export interface AlertCase {
  /** Values a minute, by series, in promtool's notation: `0x20` is 0 and twenty times more. */
  series: Record<string, string>
  /** Minutes from the beginning. */
  at: number
}

export interface AlertCases {
  fires: AlertCase & {
    /** Of what fires, beside its name and severity. */
    labels: Record<string, string>
  }
  quiet: AlertCase
}

const POD = { namespace: 'news', pod: 'tor-1' }
const OPERATOR = { namespace: 'postern-system', name: 'postern-operator' }
const AGENT = { ...POD, job: 'postern-system/tor-operator' }
const SITE = { ...POD, onion: 'site' }
/** An onion of another namespace, which this pod looks at. */
const SEEN = { ...SITE, onion_namespace: 'shop' }

/** A series by its name and labels. */
function of(name: string, labels: Record<string, string>): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
  return `${name}{${pairs.join(',')}}`
}

/** One series with a value that stays. */
const steady = (name: string, labels: Record<string, string>, value: number, at: number): AlertCase => ({
  series: { [of(name, labels)]: `${value}x${at}` },
  at,
})

/** Bridges with values that stay. */
const bridges = (at: number, ...states: number[]): AlertCase => ({
  series: Object.fromEntries(
    states.map((state, index) => [
      of('tor_agent_bridge_state', { ...POD, fingerprint: `F${index}` }),
      `${state}x${at}`,
    ]),
  ),
  at,
})

const published = (count: number, wanted: number, at: number): AlertCase => ({
  series: {
    [of('tor_agent_onions_published', POD)]: `${count}x${at}`,
    [of('tor_agent_onions_wanted', POD)]: `${wanted}x${at}`,
  },
  at,
})

const introductions = (circuits: number, bootstrapped: number, at: number): AlertCase => ({
  series: {
    [of('tor_agent_onion_intro_circuits', SITE)]: `${circuits}x${at}`,
    [of('tor_agent_bootstrapped', POD)]: `${bootstrapped}x${at}`,
  },
  at,
})

/** Introductions that are rejected a minute, for two reasons together. */
const rejected = (one: number, other: number, at: number): AlertCase => ({
  series: Object.fromEntries(
    [one, other].map((count, index) => [
      of('tor_agent_onion_rejected_introductions_total', { ...SITE, reason: `reason-${index}` }),
      `0+${count}x${at}`,
    ]),
  ),
  at,
})

const up = (job: string, values: string, at: number, more: Record<string, string> = {}): AlertCase => ({
  series: { [of('up', { job, ...more })]: values },
  at,
})

const leads = (values: readonly string[], at: number): AlertCase => ({
  series: Object.fromEntries(
    values.map((value, index) => [
      of('postern_leader_election_master_status', { ...OPERATOR, pod: `p${index}` }),
      value,
    ]),
  ),
  at,
})

const errors = (values: string, at: number): AlertCase => ({
  series: {
    [of('postern_controller_reconcile_errors_total', {
      namespace: 'postern-system',
      controller: 'tor',
      pod: 'p0',
    })]: values,
  },
  at,
})

export const CASES: Record<string, AlertCases> = {
  PosternOperatorDown: {
    fires: { ...up('postern-metrics', '1x5 0x20', 20), labels: {} },
    // One of two is enough.
    quiet: {
      series: { 'up{job="postern-metrics",pod="a"}': '0x30', 'up{job="postern-metrics",pod="b"}': '1x30' },
      at: 30,
    },
  },
  PosternNoLeader: {
    fires: { ...leads(['0x25', '0x25'], 15), labels: OPERATOR },
    // The other takes over.
    quiet: leads(['1x5 0x20', '0x8 1x20'], 15),
  },
  PosternReconcileErrors: {
    fires: { ...errors('0+3x10 30+0.7x60', 60), labels: { namespace: 'postern-system', controller: 'tor' } },
    quiet: errors('0+0.65x60', 60),
  },
  PosternTurnStuck: {
    fires: {
      ...steady('postern_workqueue_longest_running_processor_seconds', { ...OPERATOR, name: 'tor' }, 601, 10),
      labels: { namespace: 'postern-system', name: 'tor' },
    },
    quiet: steady(
      'postern_workqueue_longest_running_processor_seconds',
      { ...OPERATOR, name: 'tor' },
      599,
      10,
    ),
  },
  TorAgentDown: {
    // It answers at every third scrape: it starts again and again.
    fires: { ...up(AGENT.job, '0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1 0', 20, POD), labels: AGENT },
    // A pod that starts, and the job of somebody else.
    quiet: {
      series: {
        [of('up', AGENT)]: '0x3 1x20',
        [of('up', { ...POD, job: 'postern-system/tor-operator-of-others' })]: '0x20',
      },
      at: 20,
    },
  },
  TorDaemonNotBootstrapped: {
    fires: { ...steady('tor_agent_bootstrapped', POD, 0, 16), labels: POD },
    quiet: { series: { [of('tor_agent_bootstrapped', POD)]: '0x10 1x10' }, at: 20 },
  },
  TorRestarts: {
    fires: { series: { [of('tor_agent_tor_starts', POD)]: '1 1 2 2 3 3 4 4 5 5x30' }, at: 30, labels: POD },
    quiet: { series: { [of('tor_agent_tor_starts', POD)]: '1 1 2 2 3 3 4 4x30' }, at: 30 },
  },
  TorOnionsNotPublished: {
    fires: { ...published(2, 3, 16), labels: POD },
    quiet: published(3, 3, 16),
  },
  TorOnionDescriptorOld: {
    fires: { ...steady('tor_agent_onion_descriptor_age_seconds', SITE, 9001, 6), labels: SITE },
    // Renewed at the last moment.
    quiet: {
      series: { [of('tor_agent_onion_descriptor_age_seconds', SITE)]: '0+60x150 0+60x60' },
      at: 150,
    },
  },
  TorOnionWithoutIntroductions: {
    fires: { ...introductions(0, 1, 16), labels: SITE },
    // Another alert speaks of a tor that is not connected.
    quiet: introductions(0, 0, 16),
  },
  TorOnionUnreachable: {
    fires: { ...steady('tor_agent_onion_reachable', SEEN, 0, 16), labels: { ...SEEN, namespace: 'shop' } },
    quiet: { series: { [of('tor_agent_onion_reachable', SEEN)]: '0x10 1 0x10' }, at: 20 },
  },
  TorTargetUnreachable: {
    fires: {
      ...steady('tor_agent_target_reachable', { ...POD, proxy: 'irc', target: 'libera' }, 0, 31),
      labels: { ...POD, proxy: 'irc', target: 'libera' },
    },
    quiet: {
      series: { [of('tor_agent_target_reachable', { ...POD, proxy: 'irc', target: 'libera' })]: '0x20 1x20' },
      at: 35,
    },
  },
  TorNoHealthyBridge: {
    fires: { ...bridges(16, -1, 0), labels: POD },
    quiet: bridges(16, -1, 0, 1),
  },
  TorFewBridges: {
    fires: { ...bridges(61, 1, -1), labels: POD },
    // Two that are not dead; and below, one that was alone from the start.
    quiet: bridges(61, 1, 0, -1),
  },
  TorIntroductionsRejected: {
    fires: { ...rejected(40, 30, 40), labels: SITE },
    quiet: rejected(30, 29, 40),
  },
  TorProofOfWorkHigh: {
    fires: { ...steady('tor_agent_onion_pow_effort', SITE, 101, 31), labels: SITE },
    quiet: steady('tor_agent_onion_pow_effort', SITE, 100, 31),
  },
}

/** Further worlds in which nothing at all fires. */
export const CALM: Record<string, AlertCase> = {
  'one bridge, as its user wants it': bridges(90, 1),
  'no daemon at all': up('postern-metrics', '1x90', 90),
  'a daemon that is about to leave': {
    series: {
      [of('up', { job: 'postern-metrics' })]: '1x30',
      [of('up', AGENT)]: '1x10 0 0 stale',
      [of('tor_agent_bootstrapped', POD)]: '1x10 stale',
      [of('tor_agent_onions_wanted', POD)]: '1x10 stale',
      [of('tor_agent_onions_published', POD)]: '1x8 0 0 stale',
    },
    at: 30,
  },
}
