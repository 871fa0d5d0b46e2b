import { Option } from 'commander'
import { OPERATOR_LEASE } from '../../controller/permissions.ts'
import { LOG_LEVELS } from '../log-levels.ts'

/** All that the operator can be told: each a flag and, but for the kubeconfig's, an environment variable. */

export interface Flag {
  /** As commander takes it. */
  flags: string
  env?: string
  /** In force where neither says anything, or the variable is empty. */
  fallback?: string
  text: string
}

export type Setting =
  | 'controllers'
  | 'namespaces'
  | 'kubeconfig'
  | 'context'
  | 'leaderElect'
  | 'leaseNamespace'
  | 'leaseName'
  | 'identity'
  | 'torImage'
  | 'imagePullPolicy'
  | 'networkPolicies'
  | 'metricsAddress'
  | 'healthAddress'
  | 'logLevel'
  | 'concurrency'

export type RawSettings = { [name in Setting]?: string | boolean }

export type ControllerName = 'tor'
export const CONTROLLER_NAMES: readonly ControllerName[] = ['tor']

export const PULL_POLICIES: readonly string[] = ['Always', 'IfNotPresent', 'Never']
export const MOST_WORKERS: number = 64

/** By the names that commander makes of the flags. */
export const FLAGS: Record<Setting, Flag> = {
  controllers: {
    flags: '--controllers <list>',
    env: 'POSTERN_CONTROLLERS',
    fallback: 'tor',
    text: `what it controls, separated by commas: ${CONTROLLER_NAMES.join(', ')}`,
  },
  namespaces: {
    flags: '--namespaces <list>',
    env: 'POSTERN_NAMESPACES',
    text: 'only these namespaces, separated by commas; all when empty',
  },
  kubeconfig: {
    flags: '--kubeconfig <file>',
    text: "how to reach the API server (default: $KUBECONFIG, else the pod's service account, else ~/.kube/config)",
  },
  context: {
    flags: '--context <name>',
    env: 'POSTERN_CONTEXT',
    text: 'context of the kubeconfig (default: its current one)',
  },
  leaderElect: {
    flags: '--leader-elect [bool]',
    env: 'POSTERN_LEADER_ELECT',
    fallback: 'true',
    text: 'work only while holding a Lease: needed with more than one replica',
  },
  leaseNamespace: {
    flags: '--lease-namespace <name>',
    env: 'POSTERN_LEASE_NAMESPACE',
    text: "namespace of the Lease (default: $POD_NAMESPACE, else the service account's or the context's)",
  },
  leaseName: {
    flags: '--lease-name <name>',
    env: 'POSTERN_LEASE_NAME',
    fallback: OPERATOR_LEASE,
    text: 'name of the Lease',
  },
  identity: {
    flags: '--identity <name>',
    env: 'POSTERN_IDENTITY',
    text: 'holder of the Lease (default: $POD_NAME, else the host name and something random)',
  },
  torImage: {
    flags: '--tor-image <image>',
    env: 'POSTERN_TOR_IMAGE',
    text: "image of the tor daemons' pods; required for the controller tor",
  },
  imagePullPolicy: {
    flags: '--image-pull-policy <policy>',
    env: 'POSTERN_IMAGE_PULL_POLICY',
    text: `of that image: ${PULL_POLICIES.join(', ')} (default: the cluster's)`,
  },
  networkPolicies: {
    flags: '--network-policies [bool]',
    env: 'POSTERN_NETWORK_POLICIES',
    fallback: 'true',
    text: 'make a NetworkPolicy for each daemon',
  },
  metricsAddress: {
    flags: '--metrics-address <host:port>',
    env: 'POSTERN_METRICS_ADDRESS',
    fallback: '0.0.0.0:8080',
    text: 'serves /metrics; off for none',
  },
  healthAddress: {
    flags: '--health-address <host:port>',
    env: 'POSTERN_HEALTH_ADDRESS',
    fallback: '0.0.0.0:8081',
    text: 'serves /livez and /readyz; off for none',
  },
  logLevel: {
    flags: '--log-level <level>',
    env: 'POSTERN_LOG_LEVEL',
    fallback: 'info',
    text: `what is logged to stderr: ${LOG_LEVELS.join(', ')}`,
  },
  concurrency: {
    flags: '--concurrency <n>',
    env: 'POSTERN_CONCURRENCY',
    fallback: '4',
    text: `keys that a controller works on at the same time, 1 to ${MOST_WORKERS}`,
  },
}

/** For commander, which only collects: the values are checked all at once, in `settings.ts`. */
export function operatorOptions(): Option[] {
  return Object.values(FLAGS).flatMap(({ flags, env, fallback, text }) => {
    const option = new Option(flags, text)
    if (env !== undefined) option.env(env)
    if (fallback !== undefined) option.default(fallback)
    if (!flags.includes('[')) return [option]
    const no = flags.replace('--', '--no-').replace(/ .*/, '')
    return [option, new Option(no, `the same as ${flags.replace('[bool]', 'false')}`)]
  })
}

/** `--tor-image or POSTERN_TOR_IMAGE`, for messages. */
export function nameOf(setting: Setting): string {
  const { flags, env } = FLAGS[setting]
  const flag = flags.replace(/ .*/, '')
  return env === undefined ? flag : `${flag} (${env})`
}
