import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { CONFIG_MAP, type ConfigMap, SECRET } from '../src/cluster/kinds.ts'
import type { ApiClient } from '../src/cluster/kubernetes/api-client.ts'
import { connect, loadSettings } from '../src/cluster/kubernetes/connect.ts'
import { Reports } from '../src/cluster/reports.ts'
import { REPORT_PORT, TOPOLOGY_FILE, type TorReport } from '../src/tor/contract.ts'
import { identityOf } from '../src/tor/operator/mounts.ts'
import { guardReport } from '../src/tor/report-guard.ts'
import * as site from '../test/node/site.ts'
import { OPERATOR_NAMESPACE, openStage, type Stage } from '../test/node/stage.ts'
import { LazyCluster } from '../testbed/kubernetes/lazy-cluster.ts'
import type { Report } from './figure.ts'

const NAMESPACE = 'bench'
const CHANGES = 10
const BAR = 1
/** Of a pod that nobody makes the kubelet look at: a minute each. */
const PLAIN_CHANGES = 2

/** On a real node: a ConfigMap has changed, until the pod that runs has it. */
export async function topology(report: Report): Promise<void> {
  const cluster = new LazyCluster()
  try {
    const access = await cluster.accessWithNode()
    await using stage = await openStage(access)
    const api = connect(loadSettings({ kubeconfig: access.kubeconfig }), { component: 'bench', version: '0' })
    await stage.apply(site.namespaceObject(NAMESPACE))
    const without = plain(stage)
    without.catch(() => {})
    const times = await annotated(stage, api)
    times.sort((a, b) => a - b)
    const middle = times[Math.floor(times.length / 2)]!
    const figure = 'topology: ConfigMap changed, agent has it'
    report({ figure, value: middle, unit: 's', bar: `<= ${BAR} s`, ok: middle <= BAR })
    report({ figure: `topology: longest of ${CHANGES}`, value: times.at(-1)!, unit: 's' })
    for (const value of await without) {
      report({ figure: 'topology: ConfigMap changed, pod without annotation has it', value, unit: 's' })
    }
    await api.close()
  } finally {
    await cluster.stop()
  }
}

/** Seconds from the watch event of the ConfigMap until the agent reports its digest, for each of some changes. */
async function annotated(stage: Stage, api: ApiClient): Promise<number[]> {
  await stage.kubectl(['apply', '--server-side', '-k', stage.deployFolder])
  const deployment = 'deployment/postern-operator'
  await stage.kubectl(['scale', '-n', OPERATOR_NAMESPACE, deployment, '--replicas=1'])
  await stage.kubectl(['rollout', 'status', '-n', OPERATOR_NAMESPACE, deployment, '--timeout=120s'])
  await stage.apply(...site.siteObjects(NAMESPACE, 'web', 'a page', 80))
  await stage.apply(site.daemonObject(stage, NAMESPACE), onion(80))
  await site.ready(stage, 'onionservice', NAMESPACE, 'web')

  const inForce = new Map<string, number>()
  const reports = new Reports<TorReport>(guardReport, () => {
    const applied = reports.get('tor')?.report?.applied
    if (applied !== undefined && !inForce.has(applied)) inForce.set(applied, performance.now())
  })
  const ended = new AbortController()
  try {
    reports.follow('tor', await source(stage, api))
    await site.until('a report', async () => (inForce.size > 0 ? true : undefined))
    const changed = new Map<string, number>()
    const following = follow(api, ended.signal, (digest) => changed.set(digest, performance.now()))
    following.catch(() => {})
    const times: number[] = []
    for (let index = 0; index < CHANGES; index++) {
      const before = changed.size
      await stage.apply(onion(8000 + index))
      const [digest, at] = await site.until('the ConfigMap to change', async () => {
        return changed.size > before ? [...changed].at(-1) : undefined
      })
      times.push(await site.until('the agent to have it', async () => within(inForce.get(digest), at)))
      // What follows from a change, such as statuses, is over before the next one.
      await Promise.race([pause(2_000), following])
    }
    return times
  } finally {
    ended.abort()
    reports.close()
  }
}

function within(until: number | undefined, from: number): number | undefined {
  return until === undefined ? undefined : (until - from) / 1000
}

/** Tells the digest of each topology as it comes, in the way that the agent reports it. */
async function follow(api: ApiClient, signal: AbortSignal, tell: (digest: string) => void): Promise<void> {
  const only = { namespace: NAMESPACE, fieldSelector: 'metadata.name=tor-topology' }
  const { resourceVersion } = await api.list<ConfigMap>(CONFIG_MAP, only)
  const events = api.watch<ConfigMap>(CONFIG_MAP, { ...only, resourceVersion, timeoutSeconds: 600, signal })
  try {
    for await (const event of events) {
      if (event.type === 'BOOKMARK') continue
      const document = event.object.data?.[TOPOLOGY_FILE] ?? ''
      tell(createHash('sha256').update(document).digest('hex'))
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

async function source(stage: Stage, api: ApiClient): Promise<Parameters<Reports<TorReport>['follow']>[1]> {
  const selector = 'app.kubernetes.io/name=tor'
  const [pod] = await stage.list('pods', '-n', NAMESPACE, '-l', selector)
  const host = (pod?.status as { podIP: string } | undefined)?.podIP
  const identity = identityOf(await api.get(SECRET, { namespace: NAMESPACE, name: 'tor-keys' }))
  if (host === undefined || identity === undefined) throw new Error('the agent has no address or no identity')
  return { host, port: REPORT_PORT, certificate: identity.certificate, token: identity.token }
}

function onion(virtualPort: number): object {
  const backend = { service: 'web', port: 80 }
  const object = site.onionObject(NAMESPACE, 'web', 'web', 80)
  return { ...object, spec: { ports: [{ virtualPort, backend }] } }
}

/** Seconds until a pod that serves a mounted ConfigMap serves its change, for each of some changes. */
async function plain(stage: Stage): Promise<number[]> {
  const page = (text: string): object => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: NAMESPACE, name: 'plain' },
    data: { 'index.html': text },
  })
  const pod = site.podObject(NAMESPACE, 'plain', ['httpd', '-f', '-p', '8080', '-h', '/www'])
  const { spec } = pod as {
    spec: { volumes: object[]; containers: { volumeMounts: object[] }[] }
  }
  spec.volumes.push({ name: 'www', configMap: { name: 'plain' } })
  spec.containers[0]!.volumeMounts.push({ name: 'www', mountPath: '/www' })
  await site.until<true>('the plain pod to be taken', async () => {
    await stage.apply(page('version 0'), pod)
    return true
  })
  const address = await site.until('the plain pod', async () => {
    const { status } = await stage.get('pod', 'plain', NAMESPACE)
    return (status as { podIP?: string } | undefined)?.podIP
  })
  const served = (text: string): Promise<true> =>
    site.until<true>(
      `the pod to serve ${text}`,
      async () => {
        const seen = await (await fetch(`http://${address}:8080/index.html`)).text()
        if (seen === text) return true
        throw new Error(seen)
      },
      300_000,
    )
  await served('version 0')
  const times: number[] = []
  for (let index = 1; index <= PLAIN_CHANGES; index++) {
    await stage.apply(page(`version ${index}`))
    const began = performance.now()
    await served(`version ${index}`)
    times.push((performance.now() - began) / 1000)
  }
  return times
}
