import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubernetesAccess } from './access.ts'
import { buildPrograms } from './build.ts'
import { type ControlPlane, startControlPlane } from './control-plane.ts'
import { type NodeAccess, startNode, type TestNode } from './node/node.ts'

/** The access of a cluster with a node. */
export interface NodeClusterAccess extends KubernetesAccess {
  node: NodeAccess
}

/** A cluster that starts when it is first asked for, its node too, in a folder of its own. */
export class LazyCluster {
  readonly #ended = new AbortController()
  #folder: Promise<string> | undefined
  #controlPlane: Promise<ControlPlane> | undefined
  #node: Promise<TestNode> | undefined

  async access(): Promise<KubernetesAccess> {
    this.#controlPlane ??= this.#start()
    return (await this.#controlPlane).access
  }

  async accessWithNode(): Promise<NodeClusterAccess> {
    const access = await this.access()
    this.#node ??= this.#startNode()
    const { name, containerdSocket, cgroup } = await this.#node
    return { ...access, node: { name, containerdSocket, cgroup } }
  }

  /** Ends what runs, and deletes the folder. What still starts gives up. */
  async stop(): Promise<void> {
    this.#ended.abort(new Error('the test run is over'))
    const ignore = () => undefined
    const node = await this.#node?.catch(ignore)
    await node?.stop()
    const controlPlane = await this.#controlPlane?.catch(ignore)
    await controlPlane?.stop()
    const folder = await this.#folder
    if (folder !== undefined) await rm(folder, { recursive: true, force: true })
  }

  async #start(): Promise<ControlPlane> {
    this.#folder ??= mkdtemp(join(tmpdir(), 'ptk-'))
    return await startControlPlane({ state: await this.#folder, signal: this.#ended.signal })
  }

  async #startNode(): Promise<TestNode> {
    const controlPlane = await this.#controlPlane!
    await buildPrograms(['kubelet', 'kube-proxy', 'coredns'], this.#ended.signal)
    return await startNode(controlPlane)
  }
}
