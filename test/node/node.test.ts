import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import type { Resource } from '../../src/core/resource.ts'
import { helm } from '../../testbed/kubernetes/kubectl.ts'
import { LazyCluster } from '../../testbed/kubernetes/lazy-cluster.ts'
import { nodeMissing } from '../../testbed/kubernetes/left-out.ts'
import { bridgeSteps } from './bridge-steps.ts'
import { monitoringSteps } from './monitoring-steps.ts'
import { privateSteps } from './private-steps.ts'
import * as site from './site.ts'
import { OPERATOR_NAMESPACE, openStage, type Stage } from './stage.ts'
import { curl, LAB_PAGE, OURS, type Steps } from './steps.ts'
import { torOnlySteps } from './tor-only-steps.ts'

/** What a user does in a cluster, one step after the other, on a real node. */

const ROOT = join(import.meta.dirname, '..', '..')
const skip = await nodeMissing()

describe('a cluster with a node', skip === undefined ? {} : { skip }, () => {
  let stage: Stage
  let hostname: string
  // A cluster of its own: the kinds are removed in the end, which would be the end of other tests'.
  const cluster = new LazyCluster()
  before(async () => {
    stage = await openStage(await cluster.accessWithNode())
  })
  const undo = new AsyncDisposableStack()
  after(async () => {
    await undo.disposeAsync()
    await stage?.[Symbol.asyncDispose]()
    await cluster.stop()
  })

  let failed = false
  /** Each step builds on those before it. */
  const step = (name: string, work: (t: TestContext) => Promise<unknown>): void => {
    test(name, async (t) => {
      if (failed) return t.skip('an earlier step failed')
      failed = true
      await work(t)
      failed = false
    })
  }
  const manifest = (file: string, namespace: string): Promise<string> => {
    const text = readFileSync(join(ROOT, 'examples', 'kinds', file), 'utf8')
    return stage.kubectl(['apply', '-n', namespace, '-f', '-'], text)
  }
  const daemonPods = (namespace: string): Promise<Resource[]> =>
    stage.list('pods', '-n', namespace, '-l', OURS)
  const uids = async (namespace: string): Promise<string[]> =>
    (await daemonPods(namespace)).map((pod) => pod.metadata.uid!).sort()
  const rolledOut = (namespace: string, deployment: string) =>
    stage.kubectl(['rollout', 'status', '-n', namespace, `deployment/${deployment}`, '--timeout=120s'])

  step('is installed by kubectl apply -k, with two replicas', async () => {
    await stage.kubectl(['apply', '--server-side', '-k', stage.deployFolder])
    await rolledOut(OPERATOR_NAMESPACE, 'postern-operator').catch(async (error: Error) => {
      const pods = await stage.kubectl(['describe', 'pods', '-n', OPERATOR_NAMESPACE])
      throw new Error(`${error.message}\n${pods}`)
    })
  })

  step('publishes the article’s OnionService, and a visitor gets its page', async () => {
    await stage.apply(site.namespaceObject('lab'), site.daemonObject(stage, 'lab'))
    await stage.apply(...site.siteObjects('lab', 'my-service', LAB_PAGE, 8443))
    await manifest('onion-service.yaml', 'lab')
    const onion = await site.ready(stage, 'onionservice', 'lab', 'my-service')
    hostname = (onion.status as { hostname: string }).hostname
    assert.match(hostname, /^[a-z2-7]{56}\.onion$/)
    await site.visited(stage, hostname, LAB_PAGE, 443)
  })

  step('lets a pod reach an onion by the name of its OnionProxy', async () => {
    await stage.apply(site.namespaceObject('home'), site.daemonObject(stage, 'home'))
    await stage.apply({
      apiVersion: 'tor.fr0st.dev/v1alpha1',
      kind: 'OnionProxy',
      metadata: { namespace: 'home', name: 'upstreams' },
      spec: { targets: [{ name: 'lab', onion: hostname, port: 443, listenPort: 6697 }] },
    })
    await stage.apply(site.podObject('home', 'client', ['sleep', '100000']))
    await site.ready(stage, 'onionproxy', 'home', 'upstreams')
    const seen = await site.until('the page by the proxy', () =>
      curl(stage, 'home', 'client', 'http://upstreams.home.svc:6697/'),
    )
    assert.match(seen, new RegExp(LAB_PAGE))
  })

  step('hands a changed topology to the running agent at once', async (t) => {
    const before = await uids('lab')
    await stage.apply(site.onionObject('lab', 'second', 'my-service', 8443))
    const changed = await site.until('the changed ConfigMap', async () => {
      const map = await stage.get('configmap', 'tor-topology', 'lab')
      return (map.data as Record<string, string>)['topology.json']?.includes('"second"')
        ? performance.now()
        : undefined
    })
    await site.until('the agent to have it', async () => {
      const onion = await stage.get('onionservice', 'second', 'lab')
      const { reason = '' } = site.conditionOf(onion, 'Published') ?? {}
      if (['UploadPending', 'DescriptorUploaded'].includes(reason)) return true
      throw new Error(JSON.stringify(onion.status))
    })
    t.diagnostic(
      `topology to agent: ${((performance.now() - changed) / 1000).toFixed(2)} s, kubectl included`,
    )
    await site.ready(stage, 'onionservice', 'lab', 'second')
    assert.deepEqual(await uids('lab'), before, 'no pod was replaced')
  })

  step('keeps every daemon when the operator is rolled', async () => {
    const before = await uids('lab')
    await stage.kubectl(['rollout', 'restart', '-n', OPERATOR_NAMESPACE, 'deployment/postern-operator'])
    await rolledOut(OPERATOR_NAMESPACE, 'postern-operator')
    await stage.apply(site.onionObject('lab', 'third', 'my-service', 8443))
    await site.ready(stage, 'onionservice', 'lab', 'third')
    assert.deepEqual(await uids('lab'), before)
  })

  step('rolls a daemon without a failed visit of a visitor who retries once', async (t) => {
    const before = await uids('lab')
    const visitor = new site.Visitor(stage, hostname, LAB_PAGE, 443)
    await stage.kubectl([
      ...['patch', 'tordaemon', 'tor', '-n', 'lab', '--type=merge', '-p'],
      JSON.stringify({ spec: { podTemplate: { metadata: { annotations: { 'example.org/rolled': '1' } } } } }),
    ])
    await replaced('lab', before)
    await visitor.end()
    t.diagnostic(visitor.summary)
    assert.deepEqual(visitor.failures, [])
    await site.ready(stage, 'onionservice', 'lab', 'my-service')
  })

  step('drains a node’s daemon without a failed visit either', async (t) => {
    const before = await uids('lab')
    const { name } = stage.access.node
    const visitor = new site.Visitor(stage, hostname, LAB_PAGE, 443)
    await stage.kubectl(['cordon', name])
    const draining = stage.kubectl([
      ...['drain', name, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=120s'],
      `--pod-selector=${OURS}`,
    ])
    // Another node would take the successor: here it is the same one, once it takes pods again.
    await site.until('a successor that waits', async () =>
      (await uids('lab')).length > 1 ? true : undefined,
    )
    await stage.kubectl(['uncordon', name])
    await draining
    await replaced('lab', before)
    await visitor.end()
    t.diagnostic(visitor.summary)
    assert.deepEqual(visitor.failures, [])
  })

  const steps: Steps = {
    step,
    stage: () => stage,
    hostname: () => hostname,
    defer: (work) => undo.defer(async () => void (await work())),
  }
  privateSteps(steps)
  bridgeSteps(steps)
  torOnlySteps(steps)
  monitoringSteps(steps)

  step('leaves nothing behind when everything is deleted', async () => {
    await stage.kubectl(['delete', 'onionservices,onionproxies,tordaemons', '--all', '-A', '--timeout=60s'])
    const kinds =
      'deployments,replicasets,pods,configmaps,services,serviceaccounts,poddisruptionbudgets,networkpolicies'
    await site.until('nothing of ours', async () => {
      const left = await stage.list(kinds, '-A', '-l', OURS)
      if (left.length === 0) return true
      throw new Error(left.map((one) => `${one.kind} ${one.metadata.name}`).join(', '))
    })
    // A key is an address: it outlives its OnionService unless its user says otherwise.
    const keys = (await stage.list('secrets', '-A', '-l', OURS)).map(({ metadata }) => metadata.name).sort()
    const onions = ['my-service', 'newsroom', 'second', 'site', 'third']
    assert.deepEqual(
      keys,
      onions.map((name) => `${name}-onion-key`),
    )
    await stage.kubectl(['delete', '-k', stage.deployFolder, '--timeout=120s'])
    const left = [
      ...(await stage.list('crds')).filter((one) => one.metadata.name.endsWith('fr0st.dev')),
      ...(await stage.list('clusterroles,clusterrolebindings', '-l', 'app.kubernetes.io/part-of=postern')),
    ]
    assert.deepEqual(
      left.map((one) => one.metadata.name),
      [],
    )
  })

  step('is installed by helm as well, and takes an address up again', async () => {
    const colon = (reference: string): [string, string] => {
      const at = reference.lastIndexOf(':')
      return [reference.slice(0, at), reference.slice(at + 1)]
    }
    const [operator, tag] = colon(stage.images.operator)
    const [tor] = colon(stage.images.tor)
    const values = [
      'image.repository',
      operator,
      'image.tag',
      tag,
      'torImage.repository',
      tor,
      'torImage.tag',
      tag,
    ]
    const sets = values.flatMap((value, index) =>
      index % 2 === 0 ? ['--set', `${value}=${values[index + 1]}`] : [],
    )
    const chart = join(ROOT, 'charts', 'postern')
    const place = ['-n', OPERATOR_NAMESPACE]
    await helm(
      ['install', 'postern', chart, ...place, '--create-namespace', '--wait', '--timeout', '120s', ...sets],
      stage.access,
    )
    await stage.apply(site.daemonObject(stage, 'lab'))
    await manifest('onion-service.yaml', 'lab')
    const onion = await site.ready(stage, 'onionservice', 'lab', 'my-service')
    assert.equal((onion.status as { hostname: string }).hostname, hostname)
    await site.visited(stage, hostname, LAB_PAGE, 443)
    await stage.kubectl(['delete', 'onionservices,tordaemons', '--all', '-n', 'lab', '--timeout=60s'])
    await helm(['uninstall', 'postern', ...place, '--wait'], stage.access)
    await stage.kubectl([
      'delete',
      'namespace',
      'lab',
      'home',
      'censored',
      'press',
      OPERATOR_NAMESPACE,
      '--wait=false',
    ])
  })

  /** Waits until none of these pods is left and one that is ready is there. */
  async function replaced(namespace: string, before: string[]): Promise<void> {
    await site.until('the successor alone', async () => {
      const pods = await daemonPods(namespace)
      const old = pods.filter((pod) => before.includes(pod.metadata.uid!))
      const fresh = pods.filter((pod) => !before.includes(pod.metadata.uid!))
      if (old.length === 0 && fresh.some((pod) => site.conditionOf(pod, 'Ready')?.status === 'True'))
        return true
      throw new Error(
        pods.map((pod) => `${pod.metadata.name} ${site.conditionOf(pod, 'Ready')?.status}`).join(),
      )
    })
  }
})
