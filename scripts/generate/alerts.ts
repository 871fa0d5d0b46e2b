/**
 * What a person must act on, by Prometheus. Texts may use Prometheus' own templates. Each alert has a page
 * `docs/runbooks/NAME.md`, and cases in `test/monitoring/alert-cases.ts`.
 */
export interface Alert {
  name: string
  expression: string
  /** How long it must hold. */
  time: string
  /** critical: somebody is cut off, or nothing that is declared takes effect. */
  severity: 'critical' | 'warning'
  summary: string
  description: string
}

/** Where the pages are, from the top of the sources; a chart's value may have another address. */
export const RUNBOOKS = 'docs/runbooks'

/** `job` of the daemons: `NAMESPACE/tor-operator` by the PodMonitor, `tor-operator` by the ServiceMonitor. */
export const DAEMON_JOB = 'job=~"(.+/)?tor-operator"'
/** `job` of the operator: the name of its Service. */
export const OPERATOR_JOB = 'job="postern-metrics"'

export const OPERATOR_ALERTS: readonly Alert[] = [
  {
    name: 'PosternOperatorDown',
    expression: `absent(up{${OPERATOR_JOB}} == 1)`,
    time: '10m',
    severity: 'critical',
    summary: 'No operator of Postern answers.',
    description:
      'What is published stays published, but nothing that is declared takes effect. See the pods of the Deployment postern-operator.',
  },
  {
    name: 'PosternNoLeader',
    expression: 'sum by (namespace, name) (postern_leader_election_master_status) == 0',
    time: '5m',
    severity: 'critical',
    summary: 'No operator of Postern in {{ $labels.namespace }} leads.',
    description:
      'Nothing that is declared takes effect. `/readyz` and the logs of the pods of postern-operator say why the Lease {{ $labels.name }} cannot be had.',
  },
  {
    name: 'PosternReconcileErrors',
    expression:
      'sum by (namespace, controller) (increase(postern_controller_reconcile_errors_total[15m])) > 10',
    time: '15m',
    severity: 'warning',
    summary: 'The controller {{ $labels.controller }} of Postern fails again and again.',
    description:
      "The log of the leading pod of postern-operator has the errors. Users' mistakes are not among them.",
  },
  {
    name: 'PosternTurnStuck',
    expression: 'max by (namespace, name) (postern_workqueue_longest_running_processor_seconds) > 600',
    time: '5m',
    severity: 'warning',
    summary: 'A turn of the controller {{ $labels.name }} of Postern does not end.',
    description:
      'A turn takes less than a second. The object that it is about, and with enough of them every other, no longer follows what is declared.',
  },
]

/** A series that the pod of one namespace has of an onion of another: as one of that onion's. */
export function ofItsOwn(series: string): string {
  return `label_replace(${series}, "namespace", "$1", "onion_namespace", "(.+)")`
}

export const TOR_ALERTS: readonly Alert[] = [
  {
    name: 'TorAgentDown',
    // An average: a pod that starts again and again answers now and then.
    expression: `avg_over_time(up{${DAEMON_JOB}}[10m]) < 0.5`,
    time: '5m',
    severity: 'critical',
    summary: 'The tor pod {{ $labels.namespace }}/{{ $labels.pod }} does not answer.',
    description:
      'The onions of its daemon are most likely off the air, and its proxies too. `kubectl describe pod` says why.',
  },
  {
    name: 'TorDaemonNotBootstrapped',
    expression: 'tor_agent_bootstrapped == 0',
    time: '15m',
    severity: 'critical',
    summary: 'The tor of {{ $labels.namespace }}/{{ $labels.pod }} is not connected to the network.',
    description: 'Its onions cannot be reached. `kubectl describe tordaemon` in its namespace says why.',
  },
  {
    name: 'TorRestarts',
    expression: 'changes(tor_agent_tor_starts[1h]) > 3',
    time: '0m',
    severity: 'warning',
    summary: 'The tor of {{ $labels.namespace }}/{{ $labels.pod }} starts again and again.',
    description: "Each start ends all circuits. The log of the daemon's pod has its last words.",
  },
  {
    name: 'TorOnionsNotPublished',
    expression: 'tor_agent_onions_published < tor_agent_onions_wanted',
    time: '15m',
    severity: 'warning',
    summary: 'Onions of {{ $labels.namespace }}/{{ $labels.pod }} are not published.',
    description: '`kubectl get onionservices` in its namespace shows which, `kubectl describe` says why.',
  },
  {
    name: 'TorOnionDescriptorOld',
    // Every one to two hours in order; after three nobody finds it.
    expression: 'tor_agent_onion_descriptor_age_seconds > 9000',
    time: '5m',
    severity: 'warning',
    summary: 'The descriptor of the onion {{ $labels.namespace }}/{{ $labels.onion }} is not renewed.',
    description:
      'Three hours after its last acknowledged upload nobody finds the onion any more. It is renewed every one to two hours.',
  },
  {
    name: 'TorOnionWithoutIntroductions',
    expression: 'tor_agent_onion_intro_circuits == 0 and on (namespace, pod) tor_agent_bootstrapped == 1',
    time: '15m',
    severity: 'warning',
    summary: 'The onion {{ $labels.namespace }}/{{ $labels.onion }} has no introduction point.',
    description: 'Its tor is connected, but nobody who looks it up can be introduced to it.',
  },
  {
    name: 'TorOnionUnreachable',
    expression: `${ofItsOwn('tor_agent_onion_reachable')} == 0`,
    time: '15m',
    severity: 'critical',
    summary: 'The onion {{ $labels.namespace }}/{{ $labels.onion }} cannot be reached from another tor.',
    description: '`kubectl describe onionservice` says at which step it fails, and what was tried so far.',
  },
  {
    name: 'TorTargetUnreachable',
    expression: 'tor_agent_target_reachable == 0',
    time: '30m',
    severity: 'warning',
    summary:
      'The target {{ $labels.target }} of the OnionProxy {{ $labels.namespace }}/{{ $labels.proxy }} cannot be reached through Tor.',
    description: '`kubectl describe onionproxy` in its namespace says why.',
  },
  {
    name: 'TorNoHealthyBridge',
    expression: 'max by (namespace, pod) (tor_agent_bridge_state) < 1',
    time: '15m',
    severity: 'critical',
    summary: 'No bridge of {{ $labels.namespace }}/{{ $labels.pod }} is healthy.',
    description:
      'Its tor reaches the network through bridges alone, and has none: either all are blocked, or the network of the pod is away.',
  },
  {
    name: 'TorFewBridges',
    // One that was alone from the start is how its user wants it.
    expression:
      'count by (namespace, pod) (tor_agent_bridge_state >= 0) == 1 and on (namespace, pod) count by (namespace, pod) (tor_agent_bridge_state) > 1',
    time: '1h',
    severity: 'warning',
    summary: 'All bridges of {{ $labels.namespace }}/{{ $labels.pod }} are dead but one.',
    description:
      'When that one goes, its tor is cut off. `kubectl describe tordaemon` says which are dead, and why no new ones came.',
  },
  {
    name: 'TorIntroductionsRejected',
    expression:
      'sum by (namespace, pod, onion) (rate(tor_agent_onion_rejected_introductions_total[15m])) > 1',
    time: '15m',
    severity: 'warning',
    summary: 'The onion {{ $labels.namespace }}/{{ $labels.onion }} turns visitors away.',
    description:
      'More than one introduction a second is rejected: somebody floods it, or visitors come with descriptors that are not in force.',
  },
  {
    name: 'TorProofOfWorkHigh',
    expression: 'tor_agent_onion_pow_effort > 100',
    time: '30m',
    severity: 'warning',
    summary:
      'The onion {{ $labels.namespace }}/{{ $labels.onion }} asks its visitors for much proof of work.',
    description: 'It is flooded, and the defence is at work: honest visitors wait for seconds or longer.',
  },
]

export const ALERTS: readonly Alert[] = [...OPERATOR_ALERTS, ...TOR_ALERTS]

/** `docs/runbooks/README.md`: the pages, with what tells when. */
export function runbookIndex(): string {
  return [
    '# Runbooks',
    '',
    'Generated by `npm run generate`; do not edit. A page for each alert of the PrometheusRule: what it means, what users',
    'feel, what to check, what to do. [Monitoring](../monitoring.md) says how to have them.',
    '',
    '| alert | severity | holds for | when |',
    '| --- | --- | --- | --- |',
    ...ALERTS.map(
      ({ name, severity, time, expression }) =>
        `| [${name}](${name}.md) | ${severity} | ${time} | \`${expression.replaceAll('|', '\\|')}\` |`,
    ),
    '',
  ].join('\n')
}
