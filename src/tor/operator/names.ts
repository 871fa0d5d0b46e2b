import type { Resource } from '../../core/resource.ts'

/** Names and labels of what a daemon owns; the labels are those that existing PodMonitors select by. */

export interface DaemonId {
  namespace: string
  name: string
}

export const PROVISIONED_ANNOTATION = 'tor.fr0st.dev/provisioned'
export const START_OPTIONS_ANNOTATION = 'tor.fr0st.dev/start-options'
/** On a pod: what was mounted into it last. A change makes the kubelet look at once instead of within a minute. */
export const MOUNTED_ANNOTATION = 'tor.fr0st.dev/mounted'

export const MANAGED_BY: Record<string, string> = { 'app.kubernetes.io/managed-by': 'tor-operator' }

export function daemonLabels(daemon: DaemonId): Record<string, string> {
  return {
    ...MANAGED_BY,
    'app.kubernetes.io/name': 'tor',
    'app.kubernetes.io/instance': daemon.name,
    'app.kubernetes.io/component': 'tor-daemon',
    'app.kubernetes.io/part-of': 'postern',
  }
}

/** Labels that select the pods of a daemon. */
export function podSelector(daemon: DaemonId): Record<string, string> {
  return { 'app.kubernetes.io/name': 'tor', 'app.kubernetes.io/instance': daemon.name }
}

export const topologyName = (daemon: DaemonId): string => `${daemon.name}-topology`
export const keysName = (daemon: DaemonId): string => `${daemon.name}-keys`
export const metricsName = (daemon: DaemonId): string => `${daemon.name}-metrics`
/** Of at most 8 characters behind the dash, as -metrics: a daemon's name leaves no more. */
export const accessName = (daemon: DaemonId, way: 'socks' | 'httpConnect'): string =>
  `${daemon.name}-${way === 'socks' ? 'socks' : 'connect'}`
/** Label of the Services by which workloads reach tor themselves. */
export const ACCESS_COMPONENT = 'tor-access'
export const PROXY_COMPONENT = 'onion-proxy'
export const componentOf = ({ metadata }: Resource): string | undefined =>
  metadata.labels?.['app.kubernetes.io/component']
export const stateName = (daemon: DaemonId): string => `${daemon.name}-state`
const ONION_KEY = '-onion-key'
export const onionKeyName = (onion: string): string => `${onion}${ONION_KEY}`
/** The onion whose generated key has this name; undefined for other names. */
export const onionOfKeyName = (name: string): string | undefined =>
  name.endsWith(ONION_KEY) ? name.slice(0, -ONION_KEY.length) : undefined
