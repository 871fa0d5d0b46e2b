import { DAEMON_JOB, ofItsOwn } from './alerts.ts'

/** What the dashboard shows, row by row. */

export interface Query {
  expression: string
  legend: string
}

export interface Panel {
  title: string
  description: string
  type: 'stat' | 'timeseries' | 'table'
  /** Of 24 columns. */
  width: number
  queries: readonly Query[]
  /** Of Grafana. */
  unit?: string
  /** Words and colours in the place of numbers. */
  states?: readonly State[]
  /** Tables: what the columns of the queries are called, one each, in their order. */
  columns?: readonly string[]
}

export interface State {
  value: number
  text: string
  color: 'green' | 'yellow' | 'red'
}

export interface Row {
  title: string
  panels: readonly Panel[]
}

const YES_NO: readonly State[] = [
  { value: 1, text: 'yes', color: 'green' },
  { value: 0, text: 'no', color: 'red' },
]
const BRIDGE: readonly State[] = [
  { value: 1, text: 'healthy', color: 'green' },
  { value: 0, text: 'unknown', color: 'yellow' },
  { value: -1, text: 'dead', color: 'red' },
]
/** What the variables leave. */
const CHOSEN = 'namespace=~"$namespace"'
const ONION = `${CHOSEN},onion=~"$onion"`
const BY_ONION = '{{namespace}}/{{onion}}'
const REACHABLE = ofItsOwn('tor_agent_onion_reachable{onion_namespace=~"$namespace",onion=~"$onion"}')
const one = (expression: string, legend: string): readonly Query[] => [{ expression, legend }]

export const ROWS: readonly Row[] = [
  {
    title: 'All namespaces',
    panels: [
      {
        title: 'Tor bootstrapped',
        description: 'Whether the tor of each namespace is connected to the network.',
        type: 'stat',
        width: 8,
        queries: one('tor_agent_bootstrapped', '{{namespace}}'),
        states: YES_NO,
      },
      {
        title: 'Onions published',
        description: 'Onions with an acknowledged descriptor upload: they can be found.',
        type: 'stat',
        width: 8,
        queries: one('sum by (namespace) (tor_agent_onions_published)', '{{namespace}}'),
      },
      {
        title: 'Healthy bridges',
        description: 'Bridges that carry. Namespaces without bridges are not listed.',
        type: 'stat',
        width: 8,
        queries: one('count by (namespace) (tor_agent_bridge_state == 1)', '{{namespace}}'),
      },
      {
        title: 'Onions that are missing',
        description: 'Declared, and not published. More than 0 for more than minutes is an alert.',
        type: 'timeseries',
        width: 12,
        queries: one(
          'sum by (namespace) (tor_agent_onions_wanted - tor_agent_onions_published)',
          '{{namespace}}',
        ),
      },
      {
        title: 'Starts of tor',
        description: 'In the last hour, by pod. Each ends all circuits.',
        type: 'timeseries',
        width: 12,
        queries: one('changes(tor_agent_tor_starts[1h])', '{{namespace}}/{{pod}}'),
      },
    ],
  },
  {
    title: 'Onions',
    panels: [
      {
        title: 'Onions',
        description: 'What each onion is like now.',
        type: 'table',
        width: 24,
        queries: [
          { expression: `max by (namespace, onion) (${REACHABLE})`, legend: '' },
          {
            expression: `min by (namespace, onion) (tor_agent_onion_descriptor_age_seconds{${ONION}})`,
            legend: '',
          },
          { expression: `max by (namespace, onion) (tor_agent_onion_intro_circuits{${ONION}})`, legend: '' },
          { expression: `sum by (namespace, onion) (tor_agent_onion_streams{${ONION}})`, legend: '' },
          { expression: `max by (namespace, onion) (tor_agent_onion_pow_effort{${ONION}})`, legend: '' },
        ],
        columns: ['Reachable', 'Descriptor age (s)', 'Introduction circuits', 'Streams', 'PoW effort'],
      },
      {
        title: 'Reachable from another tor',
        description: 'By a tor that is not its own: descriptor, introduction, rendezvous.',
        type: 'timeseries',
        width: 12,
        queries: one(`max by (namespace, onion) (${REACHABLE})`, BY_ONION),
        states: YES_NO,
      },
      {
        title: 'Age of the descriptor',
        description: 'Renewed every one to two hours; after three nobody finds the onion.',
        type: 'timeseries',
        width: 12,
        queries: one(`tor_agent_onion_descriptor_age_seconds{${ONION}}`, BY_ONION),
        unit: 's',
      },
      {
        title: 'Descriptor uploads',
        description: 'In an hour: asked of directories, and acknowledged by them.',
        type: 'timeseries',
        width: 12,
        queries: [
          {
            expression: `increase(tor_agent_onion_uploads_asked_total{${ONION}}[1h])`,
            legend: `${BY_ONION} asked`,
          },
          {
            expression: `increase(tor_agent_onion_uploads_acknowledged_total{${ONION}}[1h])`,
            legend: `${BY_ONION} acknowledged`,
          },
        ],
      },
      {
        title: 'Introduction circuits',
        description: 'By which visitors are introduced: none means that nobody gets in.',
        type: 'timeseries',
        width: 12,
        queries: one(`tor_agent_onion_intro_circuits{${ONION}}`, BY_ONION),
      },
      {
        title: 'Open streams',
        description: 'Connections of visitors to the backend.',
        type: 'timeseries',
        width: 12,
        queries: one(`tor_agent_onion_streams{${ONION}}`, BY_ONION),
      },
      {
        title: 'Traffic',
        description: 'Bytes a second, by direction.',
        type: 'timeseries',
        width: 12,
        queries: one(
          `rate(tor_agent_onion_bytes_total{${ONION}}[$__rate_interval])`,
          `${BY_ONION} {{direction}}`,
        ),
        unit: 'Bps',
      },
      {
        title: 'Rejected introductions',
        description: 'A second, by reason.',
        type: 'timeseries',
        width: 12,
        queries: one(
          `rate(tor_agent_onion_rejected_introductions_total{${ONION}}[$__rate_interval])`,
          `${BY_ONION} {{reason}}`,
        ),
        unit: 'reqps',
      },
      {
        title: 'Proof of work',
        description: 'The effort that the onion asks of its visitors: 0 while nobody floods it.',
        type: 'timeseries',
        width: 12,
        queries: one(`tor_agent_onion_pow_effort{${ONION}}`, BY_ONION),
      },
    ],
  },
  {
    title: 'Bridges',
    panels: [
      {
        title: 'State of bridges',
        description: '1 healthy, 0 unknown, -1 dead.',
        type: 'timeseries',
        width: 12,
        queries: one(`tor_agent_bridge_state{${CHOSEN}}`, '{{namespace}} {{fingerprint}}'),
        states: BRIDGE,
      },
      {
        title: 'Bridges now',
        description: 'Unknown: tor never tried it. A spare that idles is kept.',
        type: 'table',
        width: 12,
        queries: one(`max by (namespace, fingerprint) (tor_agent_bridge_state{${CHOSEN}})`, ''),
        columns: ['State'],
        states: BRIDGE,
      },
    ],
  },
  {
    title: 'Proxies to foreign onions',
    panels: [
      {
        title: 'Reachability of targets',
        description: 'By real circuits: 1 reached, 0 not.',
        type: 'timeseries',
        width: 12,
        queries: one(`tor_agent_target_reachable{${CHOSEN}}`, '{{namespace}}/{{proxy}} {{target}}'),
        states: YES_NO,
      },
      {
        title: 'Targets now',
        description: 'The newest probe of each target.',
        type: 'table',
        width: 12,
        queries: one(`min by (namespace, proxy, target) (tor_agent_target_reachable{${CHOSEN}})`, ''),
        columns: ['Reachable'],
        states: YES_NO,
      },
    ],
  },
  {
    title: 'Tor pods',
    panels: [
      {
        title: 'Pods that answer',
        description: 'Whether Prometheus gets an answer of the agent.',
        type: 'timeseries',
        width: 8,
        queries: one(`up{${DAEMON_JOB},${CHOSEN}}`, '{{namespace}}/{{pod}}'),
        states: YES_NO,
      },
      {
        title: 'Memory of the agents',
        description: 'Without their tor.',
        type: 'timeseries',
        width: 8,
        queries: one(`process_resident_memory_bytes{${DAEMON_JOB},${CHOSEN}}`, '{{namespace}}/{{pod}}'),
        unit: 'bytes',
      },
      {
        title: 'CPU of the agents',
        description: 'Share of a core, without their tor.',
        type: 'timeseries',
        width: 8,
        queries: one(
          `rate(process_cpu_seconds_total{${DAEMON_JOB},${CHOSEN}}[$__rate_interval])`,
          '{{namespace}}/{{pod}}',
        ),
        unit: 'percentunit',
      },
    ],
  },
  {
    title: 'Operator',
    panels: [
      {
        title: 'Leads',
        description: 'One of the replicas leads, the others stand by.',
        type: 'stat',
        width: 6,
        queries: one('postern_leader_election_master_status', '{{pod}}'),
      },
      {
        title: 'Turns',
        description: 'A second, by how they end. Errors are tried again.',
        type: 'timeseries',
        width: 9,
        queries: one(
          'sum by (controller, result) (rate(postern_controller_reconcile_total[$__rate_interval]))',
          '{{controller}} {{result}}',
        ),
        unit: 'ops',
      },
      {
        title: 'Time of a turn',
        description: 'The slowest of a hundred is at least as slow as this.',
        type: 'timeseries',
        width: 9,
        queries: one(
          'histogram_quantile(0.99, sum by (controller, le) (rate(postern_controller_reconcile_time_seconds_bucket[$__rate_interval])))',
          '{{controller}}',
        ),
        unit: 's',
      },
      {
        title: 'Keys that wait',
        description: 'For a worker.',
        type: 'timeseries',
        width: 8,
        queries: one('sum by (name) (postern_workqueue_depth)', '{{name}}'),
      },
      {
        title: 'Writes',
        description: 'A second: 0 in a world that is as it should be.',
        type: 'timeseries',
        width: 8,
        queries: one(
          'sum by (controller) (rate(postern_controller_writes_total[$__rate_interval]))',
          '{{controller}}',
        ),
        unit: 'ops',
      },
      {
        title: 'Requests to the API server',
        description: 'A second, by method and status.',
        type: 'timeseries',
        width: 8,
        queries: one(
          'sum by (method, code) (rate(postern_rest_client_requests_total[$__rate_interval]))',
          '{{method}} {{code}}',
        ),
        unit: 'reqps',
      },
    ],
  },
]
