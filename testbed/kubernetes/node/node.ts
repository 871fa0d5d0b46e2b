import { Resolver } from 'node:dns/promises'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { PosternError } from '../../../src/core/errors.ts'
import { run } from '../run.ts'
import type { Process, SpawnOptions, Testbed } from '../types.ts'
import { openApi, type TestApi } from './api.ts'
import { makeCgroups, processesIn, removeCgroups } from './cgroups.ts'
import {
  cniConfig,
  containerdConfig,
  kubeletConfig,
  type NodePaths,
  nodePaths,
  proxyConfig,
} from './configs.ts'
import { dnsObjects } from './dns.ts'
import { coreDnsImage, packImage, pauseImage, webImage } from './images.ts'
import { writeCgroup } from './leftovers.ts'
import { whyNoNode } from './machine.ts'
import { makeNamespaces, type NodeNamespaces } from './namespaces.ts'
import { waitUntil } from './wait.ts'

/** What another process needs to use a running node: plain data. */
export interface NodeAccess {
  name: string
  /** Of containerd. Images are those of its namespace k8s.io. */
  containerdSocket: string
  /** Path below each mounted hierarchy; a pod's processes are in its `kubepods`. */
  cgroup: string
}

/** A running node. */
export interface TestNode extends NodeAccess {
  /** Kubelet, runtime and service proxy, for tests that look at them. */
  processes: readonly Process[]
  /** Ends all pods at once, without their grace period, and everything of the node; what it kept on disk is removed. */
  stop(): Promise<void>
}

export interface NodeOptions {
  /** Docker or OCI archives to import, each named as pods name them. */
  images?: readonly string[]
}

const ctr = '/usr/bin/ctr'
const containerd = '/usr/bin/containerd'

/**
 * Starts a node of the test bed's cluster: containerd, kubelet, service proxy and cluster DNS. Resolves once it is Ready and
 * names of Services resolve and are reached, from this process too. It dies with this process.
 *
 * @throws PosternError `NodeMachine` if this machine cannot run one, with the remedy
 */
export async function startNode(testbed: Testbed, options: NodeOptions = {}): Promise<TestNode> {
  const missing =
    testbed.network.namespace === undefined ? 'no network namespace can be made here' : await whyNoNode()
  if (missing !== undefined) throw new PosternError('NodeMachine', missing)
  const paths = nodePaths(join(testbed.state, 'node'))
  await using undo = new AsyncDisposableStack()
  undo.defer(() => rm(paths.folder, { recursive: true, force: true }))
  const cgroup = `/${testbed.network.namespace}`
  await writeCgroup(testbed.state, cgroup)
  await makeCgroups(cgroup)
  undo.defer(() => removeCgroups(cgroup))
  await writeConfigs(testbed, paths, cgroup)
  const namespaces = await makeNamespaces(testbed)
  undo.defer(() => namespaces.end())
  const api = await openApi(testbed.kubeconfigs.admin)
  const access: NodeAccess = { name: testbed.nodeName, containerdSocket: paths.containerdSocket, cgroup }
  const processes: Process[] = []
  const started = (process: Process) => {
    processes.push(process)
    undo.defer(() => process.kill())
  }
  try {
    const [images] = await all(packImages(testbed, paths), startContainerd(namespaces, paths).then(started))
    // No pod may come before the image that holds its namespaces: the kubelet would try to pull it and back off.
    await importImage(access, images.pause)
    const dns = async () => {
      await importImage(access, images.dns)
      await applyDns(testbed, api)
    }
    const others = async () => {
      for (const archive of [images.web, ...(options.images ?? [])]) await importImage(access, archive)
    }
    const node = async () => {
      started(await startKubelet(testbed, namespaces, paths))
      // The service proxy asks for the node's address at longer and longer intervals: it starts when there is one.
      await waitUntil(
        'the node to be registered',
        60_000,
        async () => (await nodeObject(testbed, api)) !== undefined,
      )
      started(await startProxy(testbed, paths))
    }
    await all(node(), dns(), others())
    await waitUntil(
      'the node to be Ready',
      60_000,
      () => isReady(testbed, api),
      () => conditions(testbed, api),
    )
    await waitUntil(
      'the cluster DNS to answer',
      60_000,
      () => resolves(testbed),
      () => podsIn(api, 'kube-system'),
    )
  } finally {
    await api.close()
  }
  const end = undo.move()
  return { ...access, processes, stop: () => end.disposeAsync() }
}

/** As Promise.all, but when one fails the others have come to their end too: what they started can be stopped. */
async function all<T extends readonly Promise<unknown>[]>(
  ...tasks: T
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(tasks)
  return await Promise.all(tasks)
}

/** Imports a docker or OCI archive. Pods use it at once, by the name in it. */
export async function importImage(node: NodeAccess, archive: string): Promise<void> {
  await run(ctr, ['--address', node.containerdSocket, '--namespace', 'k8s.io', 'images', 'import', archive])
}

/** Ids, on this machine, of the processes in a pod; those of its first process, which does nothing, too. */
export function podProcesses(node: NodeAccess, uid: string): Promise<number[]> {
  return processesIn(node.cgroup, uid)
}

async function writeConfigs(testbed: Testbed, paths: NodePaths, cgroup: string): Promise<void> {
  const { network, pki, kubeconfigs } = testbed
  await mkdir(paths.cni, { recursive: true })
  await writeFile(paths.resolvConf, '')
  await writeFile(join(paths.cni, 'testbed.conflist'), cniConfig(paths, network))
  await writeFile(paths.containerdConfig, containerdConfig(paths))
  await writeFile(paths.kubeletConfig, kubeletConfig(paths, { pki, network, cgroup }))
  const proxy = { kubeconfig: kubeconfigs.proxy, name: testbed.nodeName, network }
  await writeFile(paths.proxyConfig, proxyConfig(proxy))
}

async function packImages(
  testbed: Testbed,
  paths: NodePaths,
): Promise<{ pause: string; dns: string; web: string }> {
  const pack = (image: Parameters<typeof packImage>[0]) => packImage(image, paths.folder)
  const [pause, dns, web] = await Promise.all([
    pack(pauseImage),
    pack(coreDnsImage(testbed.programs.coredns)),
    pack(webImage),
  ])
  return { pause, dns, web }
}

function startContainerd(namespaces: NodeNamespaces, paths: NodePaths): Promise<Process> {
  return namespaces.spawn('containerd', containerd, ['--config', paths.containerdConfig], {
    ready: () => listens({ path: paths.containerdSocket }),
  })
}

function startKubelet(testbed: Testbed, namespaces: NodeNamespaces, paths: NodePaths): Promise<Process> {
  const root = join(paths.folder, 'kubelet')
  return namespaces.spawn('kubelet', testbed.programs.kubelet, [
    `--config=${paths.kubeletConfig}`,
    `--kubeconfig=${testbed.kubeconfigs.kubelet}`,
    `--root-dir=${root}`,
    `--cert-dir=${join(root, 'pki')}`,
    `--hostname-override=${testbed.nodeName}`,
    `--node-ip=${testbed.network.nodeAddress}`,
  ])
}

function startProxy(testbed: Testbed, paths: NodePaths): Promise<Process> {
  const options: SpawnOptions = { ready: () => listens({ host: testbed.network.nodeAddress, port: 10256 }) }
  return testbed.spawn(
    'kube-proxy',
    testbed.programs['kube-proxy'],
    [`--config=${paths.proxyConfig}`],
    options,
  )
}

function listens(to: { path: string } | { host: string; port: number }): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(to)
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket
      .once('connect', () => socket.destroy())
      .setTimeout(1000, () => socket.destroy(new Error('timeout')))
  })
}

async function applyDns(testbed: Testbed, api: TestApi): Promise<void> {
  const image = coreDnsImage(testbed.programs.coredns).name
  for (const object of dnsObjects(testbed.network, image)) {
    // Its namespace comes a moment after the API server.
    await waitUntil(`${object.kind} ${object.metadata.name} to be applied`, 60_000, async () => {
      await api.apply(object)
      return true
    })
  }
}

interface NodeObject {
  status?: { conditions?: { type: string; status: string; message?: string }[] }
}

async function nodeObject(testbed: Testbed, api: TestApi): Promise<NodeObject | undefined> {
  return (await api.get(`/api/v1/nodes/${testbed.nodeName}`)) as NodeObject | undefined
}

async function conditions(testbed: Testbed, api: TestApi): Promise<{ type: string; status: string }[]> {
  const node = await nodeObject(testbed, api)
  return node?.status?.conditions ?? []
}

async function isReady(testbed: Testbed, api: TestApi): Promise<boolean> {
  return (await conditions(testbed, api)).some(({ type, status }) => type === 'Ready' && status === 'True')
}

/** By way of the service proxy, as pods ask. */
async function resolves({ network }: Testbed): Promise<boolean> {
  const resolver = new Resolver({ timeout: 500, tries: 1 })
  resolver.setServers([network.dnsAddress])
  const found = await resolver.resolve4('kubernetes.default.svc.cluster.local')
  return found.includes(network.apiAddress)
}

async function podsIn(api: TestApi, namespace: string): Promise<unknown> {
  const pods = (await api.get(`/api/v1/namespaces/${namespace}/pods`)) as {
    items: { metadata: { name: string }; status: { conditions?: unknown; containerStatuses?: unknown } }[]
  }
  return pods.items.map(({ metadata, status }) => ({
    name: metadata.name,
    conditions: status.conditions,
    containers: status.containerStatuses,
  }))
}
