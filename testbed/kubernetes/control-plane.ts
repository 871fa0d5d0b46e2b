import { mkdir, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { freePorts } from '../tor-network/ports.ts'
import { accessOf, type KubernetesAccess, newUser, type User } from './access.ts'
import { buildPrograms } from './build.ts'
import { compact } from './etcd.ts'
import { ask } from './http.ts'
import { loopback, openNetwork } from './netns.ts'
import {
  apiserverFlags,
  controllerManagerFlags,
  etcdFlags,
  etcdUrl,
  type Plan,
  type Ports,
  schedulerFlags,
  usualPorts,
} from './parts.ts'
import { writeKubeconfigs, writePki } from './pki.ts'
import { Processes } from './processes.ts'
import { Restartable } from './restartable.ts'
import type { Network, ProgramName, Testbed } from './types.ts'

export interface ControlPlaneOptions {
  /**
   * A folder of its own, made if missing, for keys, logs and data. It stays after `stop`. When this process dies before, the
   * next test bed's start deletes it, unless there was something in it before.
   */
  state: string
  /** Added to the API server's flags, e.g. `--watch-cache-sizes=configmaps#0`; a flag given twice is the later one. */
  apiserver?: readonly string[]
  /** With controller manager (garbage collection, ServiceAccounts, namespaces' ends) and scheduler; default true. */
  controllers?: boolean
  /** Default: a network namespace where this machine allows one, otherwise loopback. */
  network?: 'loopback'
  /** Default: `testbed-1` */
  nodeName?: string
  /** Told of each step, for whoever waits. */
  onStep?: (step: string) => void
  /** Gives up: everything that was started ends, and the signal's reason is thrown. */
  signal?: AbortSignal
}

export interface ControlPlane extends Testbed, AsyncDisposable {
  /** What a process needs that only uses the cluster; JSON. */
  readonly access: KubernetesAccess
  readonly apiserver: Restartable
  readonly etcd: Restartable & {
    /**
     * Forgets everything before a revision, by default the current one, and gives the revision. Watches and pages that need
     * more than what the revision itself wrote then get 410, unless the API server answers from its own memory: restart it too, or start it with
     * `--watch-cache-sizes=RESOURCE#0`.
     */
    compact(revision?: number): Promise<number>
  }
  readonly controllerManager: Restartable | undefined
  readonly scheduler: Restartable | undefined
  /** A person of some groups, known by a client certificate. */
  newUser(name: string, groups?: readonly string[]): Promise<User>
  stop(): Promise<void>
}

/**
 * Starts etcd, the API server, and (by default) the controller manager and the scheduler; builds them when they are not. Ready
 * after some 6 s. Everything ends with this process, even by kill -9.
 *
 * @throws PosternError `TestbedOff`, `GoMissing`, `TestbedBuild`, `TestbedNetwork`, `TestbedProcess`, `TestbedTimeout`
 */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { controllers = true, nodeName = 'testbed-1', onStep = () => {}, signal } = options
  const state = resolve(options.state)
  const needed: ProgramName[] = ['etcd', 'kube-apiserver']
  if (controllers) needed.push('kube-controller-manager', 'kube-scheduler')
  const programs = await buildPrograms(needed, signal)
  signal?.throwIfAborted()
  await mkdir(state, { recursive: true, mode: 0o700 })

  const opened = options.network === 'loopback' ? undefined : await openNetwork(state)
  const network = opened?.network ?? loopback
  const processes = new Processes({ state, namespace: network.namespace, signal })
  const stop = async () => {
    // What they would still write is thrown away.
    await processes.stopAll(500)
    await opened?.close()
  }
  try {
    const plan: Plan = { state, pki: join(state, 'pki'), network, ports: await portsFor(network) }
    const url = `https://${network.nodeAddress}:${plan.ports.apiserver}`
    await writePki(plan.pki, network, nodeName)
    const kubeconfigs = await writeKubeconfigs(plan.pki, state, url)
    const access = accessOf({ state, url, pki: plan.pki, kubeconfigs, network, nodeName })
    const ca = await readFile(join(plan.pki, 'ca.crt'), 'utf8')

    const part = (name: ProgramName, flags: readonly string[], ready: Ready): Restartable =>
      new Restartable(() => {
        onStep(name)
        return processes.spawn(name, programs[name], flags, { ready })
      })
    const etcd = part('etcd', etcdFlags(plan), answers(`${etcdUrl(plan)}/readyz`))
    const apiserver = part(
      'kube-apiserver',
      [...apiserverFlags(plan), ...(options.apiserver ?? [])],
      answers(`${url}/readyz`, ca),
    )
    const health = (port: number) => answers(`https://${network.nodeAddress}:${port}/healthz`)
    const { ports } = plan
    const controllerManager = part(
      'kube-controller-manager',
      controllerManagerFlags(plan, kubeconfigs),
      health(ports.controllerManager),
    )
    const scheduler = part('kube-scheduler', schedulerFlags(plan, kubeconfigs), health(ports.scheduler))
    await etcd.start()
    await apiserver.start()
    if (controllers) await Promise.all([controllerManager.start(), scheduler.start()])

    return {
      state,
      nodeName,
      programs,
      network,
      pki: plan.pki,
      kubeconfigs,
      url,
      access,
      apiserver,
      etcd: Object.assign(etcd, { compact: (revision?: number) => compact(etcdUrl(plan), revision) }),
      controllerManager: controllers ? controllerManager : undefined,
      scheduler: controllers ? scheduler : undefined,
      spawn: (...args) => processes.spawn(...args),
      newUser: (name, groups = []) => newUser(access, name, groups),
      stop,
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

type Ready = (signal: AbortSignal) => Promise<boolean>

/** Does it say 200? Without a CA the server's certificate is made by itself: whose it is does not matter here. */
function answers(url: string, ca?: string): Ready {
  return async (signal) => {
    const { status, body } = await ask(url, ca === undefined ? { insecure: true, signal } : { ca, signal })
    if (status !== 200) throw new Error(`${url} says ${status} ${body.slice(0, 1000)}`)
    return true
  }
}

async function portsFor(network: Network): Promise<Ports> {
  if (network.namespace !== undefined) return usualPorts
  const [etcd, etcdPeer, apiserver, controllerManager, scheduler] = (await freePorts(5)) as [
    number,
    number,
    number,
    number,
    number,
  ]
  return { etcd, etcdPeer, apiserver, controllerManager, scheduler }
}
