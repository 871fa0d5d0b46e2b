import assert from 'node:assert/strict'
import type { Resource } from '../../src/core/resource.ts'
import type { Target } from './prometheus.ts'

/**
 * The targets that monitors mean, by the rules of the Prometheus operator. Debian's Prometheus is built without the
 * discovery of Kubernetes' objects: what it would find is looked for here.
 */

interface Endpoint {
  port: string
  path: string
}

interface MonitorSpec {
  namespaceSelector?: { any: boolean }
  selector: { matchLabels: Record<string, string> }
  /** Of a ServiceMonitor: label of the Service whose value is the job. */
  jobLabel?: string
  endpoints?: Endpoint[]
  podMetricsEndpoints?: Endpoint[]
}

interface Pod extends Resource {
  spec: { containers: { name: string; ports?: { name?: string; containerPort: number }[] }[] }
  status: { podIP?: string }
}

interface Slice extends Resource {
  endpoints: { addresses: string[]; targetRef?: { kind: string; name: string } }[] | null
  ports: { name?: string; port: number }[]
}

/** As `kubectl get KIND ARGS… -o json`. */
export type List = (kind: string, ...args: string[]) => Promise<Resource[]>

export async function targetsOf(monitors: readonly Resource[], list: List): Promise<Target[]> {
  const found = await Promise.all(
    monitors.map((monitor) =>
      monitor.kind === 'PodMonitor' ? ofPods(monitor, list) : ofServices(monitor, list),
    ),
  )
  return found.flat()
}

async function ofPods(monitor: Resource, list: List): Promise<Target[]> {
  const { podMetricsEndpoints = [], ...spec } = monitor.spec as MonitorSpec
  const pods = (await selected(monitor, spec, 'pods', list)) as Pod[]
  const job = `${monitor.metadata.namespace}/${monitor.metadata.name}`
  return pods.flatMap((pod) =>
    pod.spec.containers.flatMap((container) =>
      (container.ports ?? []).flatMap(({ name, containerPort }) =>
        podMetricsEndpoints
          .filter(({ port }) => port === name)
          .map((endpoint) =>
            target(endpoint, job, `${pod.status.podIP}:${containerPort}`, {
              namespace: pod.metadata.namespace!,
              pod: pod.metadata.name,
              container: container.name,
            }),
          ),
      ),
    ),
  )
}

async function ofServices(monitor: Resource, list: List): Promise<Target[]> {
  const { endpoints = [], jobLabel, ...spec } = monitor.spec as MonitorSpec
  const services = await selected(monitor, spec, 'services', list)
  const all = await Promise.all(
    services.map(async ({ metadata }) => {
      const label = `kubernetes.io/service-name=${metadata.name}`
      const slices = (await list('endpointslices', '-n', metadata.namespace!, '-l', label)) as Slice[]
      const job = jobLabel === undefined ? metadata.name : (metadata.labels?.[jobLabel] ?? metadata.name)
      return slices.flatMap((slice) =>
        (slice.endpoints ?? []).flatMap(({ addresses, targetRef }) =>
          slice.ports.flatMap(({ name, port: number }) =>
            endpoints
              .filter(({ port }) => port === name)
              .map((endpoint) =>
                target(endpoint, job, `${addresses[0]}:${number}`, {
                  namespace: metadata.namespace!,
                  service: metadata.name,
                  ...(targetRef?.kind === 'Pod' ? { pod: targetRef.name } : {}),
                }),
              ),
          ),
        ),
      )
    }),
  )
  return all.flat()
}

function selected(monitor: Resource, spec: MonitorSpec, kind: string, list: List): Promise<Resource[]> {
  const where = spec.namespaceSelector?.any ? ['-A'] : ['-n', monitor.metadata.namespace!]
  const labels = Object.entries(spec.selector.matchLabels).map(([name, value]) => `${name}=${value}`)
  return list(kind, ...where, '-l', labels.join(','))
}

function target(
  { port, path }: Endpoint,
  job: string,
  address: string,
  labels: Record<string, string>,
): Target {
  assert.equal(path, '/metrics', 'what Prometheus asks for unless it is told otherwise')
  return { job, address, labels: { ...labels, endpoint: port } }
}
