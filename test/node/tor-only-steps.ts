import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { Resource } from '../../src/core/resource.ts'
import { type End, type Pod, type Policy, reader } from '../policies.ts'
import * as site from './site.ts'
import type { Stage } from './stage.ts'
import { curl, LAB_PAGE, OURS, type Steps } from './steps.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const NAMESPACE = 'press'
const WEB = undefined

const end = (pod: Resource): Pod => ({
  namespace: pod.metadata.namespace!,
  labels: pod.metadata.labels ?? {},
})

/** Where a Service leads to: ports of its pods. */
async function portsBehind(stage: Stage, service: string): Promise<number[]> {
  const label = `kubernetes.io/service-name=${service}`
  const slices = await stage.list('endpointslices', '-n', NAMESPACE, '-l', label)
  const ports = (slices as (Resource & { ports?: { port: number }[] })[]).flatMap((one) => one.ports ?? [])
  assert.ok(ports.length > 0, `${service} leads nowhere`)
  return ports.map(({ port }) => port)
}

/** A namespace whose only way out is Tor, of docs/tor-only-namespace.md. */
export function torOnlySteps({ step, stage, hostname }: Steps): void {
  step('leaves the pods of a namespace nothing but Tor, which leads them to onions', async () => {
    const folder = join(stage().folder, NAMESPACE)
    await mkdir(folder)
    const daemon = site.daemonObject(stage(), NAMESPACE) as { spec: object }
    const resources: Record<string, object> = {
      'namespace.yaml': site.namespaceObject(NAMESPACE),
      'workloads.yaml': site.podObject(NAMESPACE, 'probe', ['sleep', '100000']),
      'tor.yaml': { ...daemon, spec: { ...daemon.spec, socks: {}, httpConnect: {} } },
    }
    // JSON is YAML.
    const write = (name: string, object: object): Promise<void> =>
      writeFile(join(folder, name), JSON.stringify(object))
    for (const [name, object] of Object.entries(resources)) await write(name, object)
    await write('kustomization.yaml', {
      apiVersion: 'kustomize.config.k8s.io/v1beta1',
      kind: 'Kustomization',
      namespace: NAMESPACE,
      resources: Object.keys(resources),
      components: [relative(folder, join(ROOT, 'deploy/components/tor-only'))],
    })
    await stage().kubectl(['apply', '--server-side', '-k', folder])
    await site.ready(stage(), 'tordaemon', NAMESPACE, 'tor')
    await stage().kubectl(['wait', '-n', NAMESPACE, '--for=condition=Ready', 'pod/probe', '--timeout=60s'])

    const by = (...args: string[]): Promise<string> => curl(stage(), NAMESPACE, 'probe', ...args)
    const page = `http://${hostname()}:443/`
    const socks = ['--proxy', 'socks5h://tor-socks:9050']
    for (const way of [socks, ['--proxytunnel', '--proxy', 'http://tor-connect:8118']]) {
      const seen = await site.until(`the onion ${way.join(' ')}`, () => by(...way, page))
      assert.match(seen, new RegExp(LAB_PAGE))
    }
    await assert.rejects(by(...socks, 'http://192.0.2.1/'), /curl: \(97\)/, 'the web is not for them')
  })

  step('has the policies of it in the API server', async () => {
    const policies = (await stage().list('networkpolicies', '-n', NAMESPACE)) as unknown as Policy[]
    assert.deepEqual(policies.map(({ metadata }) => metadata.name).sort(), [
      'postern-tor-only',
      'postern-tor-only-daemons',
      'tor',
    ])
    // Pods as they are, with the labels that they have.
    const pod = async (namespace: string, ...which: string[]): Promise<End> =>
      end((await stage().list('pods', '-n', namespace, ...which))[0]!)
    const [probe, daemon, dns, other] = await Promise.all([
      pod(NAMESPACE, '-l', 'app=probe'),
      pod(NAMESPACE, '-l', OURS),
      pod('kube-system', '-l', 'k8s-app=kube-dns'),
      pod('lab', '-l', 'app=my-service'),
    ])
    const may = reader(policies)
    const ways = [
      ...(await portsBehind(stage(), 'tor-socks')),
      ...(await portsBehind(stage(), 'tor-connect')),
    ]
    for (const port of ways) {
      assert.equal(may(probe, daemon, port), true, `the daemon's ${port}`)
      assert.equal(may(other, daemon, port), false, `the daemon's ${port}, from another namespace`)
    }
    assert.equal(may(probe, dns, 53, 'UDP'), true, 'DNS')
    assert.equal(may(daemon, WEB, 9001), true, 'a relay')
    for (const port of [...(await portsBehind(stage(), 'tor-metrics')), 9081])
      assert.equal(may(probe, daemon, port), false, `the daemon's ${port}`)
    for (const port of [53, 80, 443, 9001]) assert.equal(may(probe, WEB, port), false, `the web ${port}`)
    assert.equal(may(probe, other, 8080), false, 'a pod of another namespace')
    assert.equal(may(probe, probe, 8080), false, 'a pod of its own namespace')
  })
}
