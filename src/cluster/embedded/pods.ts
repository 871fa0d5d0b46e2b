import { rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { codeOf, messageOf, PosternError } from '../../core/errors.ts'
import { type Kind, keyFor, keyOf, type Resource, refOf, sameJson, splitKey } from '../../core/resource.ts'
import type { Cache, Cluster } from '../cluster.ts'
import { CONFIG_MAP, DEPLOYMENT, POD, type Pod, SECRET, SERVICE } from '../kinds.ts'
import { AddressBook } from './pod-address.ts'
import { LocalPod } from './pod-instance.ts'
import { killMarked, STATE_MARKER } from './pod-leftovers.ts'
import { KeyQueue } from './pod-queue.ts'
import {
  checkStatePath,
  clearPodFolders,
  defaultEnvironment,
  logPath,
  openState,
  podFolder,
} from './pod-state.ts'
import { PodStatusWriter } from './pod-status.ts'
import { POD_MANAGER, podName, podOf, replicasOf, TEMPLATE_HASH, type Workload } from './pod-template.ts'

export { MAX_STATE_PATH } from './pod-state.ts'

/** What pino offers, as far as it is used here. */
export interface PodLog {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

export interface PodRunnerOptions {
  cluster: Cluster
  /** Folder that the runner keeps pods, claims and logs in; one runner a folder. */
  state: string
  /** First word of a container's command → the real argv prefix. */
  programs: Record<string, string[]>
  log?: PodLog
  /** What every pod's environment begins with; PATH, LANG and TZ of this process by default. */
  env?: Record<string, string>
  /** Kinds whose pod templates are run: Deployments by default. */
  workloads?: Kind[]
}

/** Runs the pods of a cluster's Deployments as local processes, and reports on them as the kubelet would. */
export class PodRunner {
  readonly #options: PodRunnerOptions
  readonly #queue: KeyQueue
  readonly #pods = new Map<string, LocalPod>()
  /** Key of the workload, by key of the pod. */
  readonly #owners = new Map<string, string>()
  readonly #workloads: { kind: Kind<Workload>; cache: Cache<Workload> }[]
  readonly #unsubscribe: (() => void)[] = []
  readonly #writer: PodStatusWriter
  #state = ''
  #book: AddressBook | undefined
  #closed = false

  /** @throws PosternError StatePathTooLong */
  constructor(options: PodRunnerOptions) {
    checkStatePath(resolve(options.state))
    this.#options = options
    this.#workloads = (options.workloads ?? [DEPLOYMENT]).map((kind) => ({
      kind: kind as Kind<Workload>,
      cache: options.cluster.cache(kind as Kind<Workload>),
    }))
    this.#writer = new PodStatusWriter(options.cluster, this.#pods)
    this.#queue = new KeyQueue(
      (key) => this.#work(key),
      (key, error) => options.log?.warn({ key, code: codeOf(error) }, `Pod runner: ${messageOf(error)}`),
    )
  }

  /** Ends what an earlier run left behind, then starts all pods. @throws PosternError LeftoverProcesses */
  async start(): Promise<void> {
    const { cluster } = this.#options
    this.#state = openState(this.#options.state)
    const left = await killMarked([`${STATE_MARKER}=${this.#state}`])
    if (left.length > 0) {
      throw new PosternError(
        'LeftoverProcesses',
        `Processes of an earlier run will not end: ${left.join(', ')}. End them, then start again.`,
      )
    }
    this.#book = new AddressBook(join(this.#state, 'pods.json'), this.#state)
    const pods = cluster.cache(POD)
    const services = cluster.cache(SERVICE)
    const configMaps = cluster.cache(CONFIG_MAP)
    const secrets = cluster.cache(SECRET)
    const caches = [pods, services, configMaps, secrets, ...this.#workloads.map(({ cache }) => cache)]
    await Promise.all(caches.map(({ ready }) => ready))
    if (this.#closed) return
    clearPodFolders(this.#state, this.#idsInUse())
    this.#follow(configMaps, ({ key }) => this.#refresh(CONFIG_MAP, key))
    this.#follow(secrets, ({ key }) => this.#refresh(SECRET, key))
    this.#follow(services, ({ key }) => this.#queue.add(`service ${key}`))
    this.#follow(pods, ({ key, after }) => {
      // Someone deleted a pod of ours: it comes back as a new one.
      const owner = this.#owners.get(key)
      if (after?.metadata.uid !== this.#pods.get(key)?.uid && owner !== undefined) this.#queue.add(owner)
    })
    for (const { kind, cache } of this.#workloads) {
      this.#follow(cache, ({ key, before, after }) => {
        // Our own status writes need no second look.
        const isStatusOnly =
          before !== undefined &&
          after !== undefined &&
          before.metadata.uid === after.metadata.uid &&
          before.metadata.deletionTimestamp === after.metadata.deletionTimestamp &&
          sameJson(before.spec, after.spec)
        if (!isStatusOnly) this.#queue.add(`${kind.kind} ${key}`)
      })
    }
  }

  /** SIGTERM to all pods, their grace, then SIGKILL. The objects stay, and say that the pods are stopped. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    for (const stop of this.#unsubscribe) stop()
    await Promise.all([...this.#pods.values()].map((pod) => pod.stop()))
    await this.#queue.close()
    // One may have been made while the first were stopping.
    await Promise.all([...this.#pods.values()].map((pod) => pod.stop()))
    const namespaces = new Set([...this.#pods.keys()].map((key) => splitKey(key).namespace))
    const services = [...namespaces].flatMap((namespace) =>
      this.#options.cluster.cache(SERVICE).list(namespace),
    )
    await Promise.allSettled([
      ...[...this.#pods.keys()].map((key) => this.#writer.writePod(key)),
      ...services.map((service) => this.#writer.writeService(keyOf(service))),
      ...[...new Set(this.#owners.values())].map((key) => this.#writeWorkload(key)),
    ])
    if (this.#state !== '') await killMarked([`${STATE_MARKER}=${this.#state}`])
  }

  /** Path of the file with the output of a pod's containers; an older part may stand beside it as `.1`. */
  logFile(namespace: string, pod: string): string {
    return logPath(this.#state === '' ? resolve(this.#options.state) : this.#state, namespace, pod)
  }

  #follow<T extends Resource>(cache: Cache<T>, listener: Parameters<Cache<T>['subscribe']>[0]): void {
    this.#unsubscribe.push(cache.subscribe(listener))
  }

  async #work(key: string): Promise<void> {
    const [what, object] = key.split(' ') as [string, string]
    if (what === 'pod') await this.#writer.writePod(object)
    else if (what === 'service') await this.#writer.writeService(object)
    else if (what === 'status') await this.#writeWorkload(key.slice('status '.length))
    else await this.#reconcile(key)
  }

  async #writeWorkload(key: string): Promise<void> {
    const workload = this.#workload(key)
    const [kind, name] = key.split(' ') as [string, string]
    const found = this.#workloads.find((candidate) => candidate.kind.kind === kind)
    if (workload === undefined || found === undefined) return
    const pods = [...this.#pods.values()].filter((pod) => this.#owners.get(pod.key) === key)
    await this.#writer.writeWorkload(found.kind, name, workload, pods)
  }

  #workload(key: string): Workload | undefined {
    const [kind, name] = key.split(' ') as [string, string]
    const found = this.#workloads.find((candidate) => candidate.kind.kind === kind)?.cache.get(name)
    return found?.metadata.deletionTimestamp === undefined ? found : undefined
  }

  async #reconcile(key: string): Promise<void> {
    const workload = this.#workload(key)
    const wanted = new Set<string>()
    const count = workload === undefined ? 0 : replicasOf(workload)
    for (let index = 0; index < count; index += 1) {
      wanted.add(keyFor(workload!.metadata.namespace, podName(workload!, index)))
    }
    const owned = [...this.#owners].filter(([pod, owner]) => owner === key && !wanted.has(pod))
    const steps = owned.map(([pod]) => this.#removePod(pod))
    for (const pod of this.#options.cluster.cache(POD).list(workload?.metadata.namespace)) {
      const isOurs = pod.metadata.ownerReferences?.some(({ uid }) => uid === workload?.metadata.uid)
      const podKey = keyOf(pod)
      if (isOurs && !wanted.has(podKey) && !this.#owners.has(podKey)) steps.push(this.#removePod(podKey))
    }
    for (let index = 0; index < count; index += 1) steps.push(this.#ensurePod(key, podOf(workload!, index)))
    const failed = (await Promise.allSettled(steps)).find(({ status }) => status === 'rejected')
    this.#queue.add(`status ${key}`)
    if (failed !== undefined) throw (failed as PromiseRejectedResult).reason
  }

  async #ensurePod(owner: string, desired: Pod): Promise<void> {
    const { cluster } = this.#options
    const key = keyOf(desired)
    const other = this.#owners.get(key)
    if (other !== undefined && other !== owner) {
      throw new PosternError('PodNameTaken', `Pod ${key} belongs to ${other}. Rename ${owner}.`)
    }
    const live = await cluster.get(POD, desired.metadata)
    const isSame =
      live !== undefined &&
      live.metadata.annotations?.[TEMPLATE_HASH] === desired.metadata.annotations?.[TEMPLATE_HASH] &&
      live.metadata.deletionTimestamp === undefined &&
      live.metadata.ownerReferences?.[0]?.uid === desired.metadata.ownerReferences?.[0]?.uid
    const running = this.#pods.get(key)
    if (running !== undefined && (!isSame || running.uid !== live.metadata.uid)) {
      await running.stop()
      this.#forget(key)
    }
    if (this.#closed) return
    if (live !== undefined && !isSame) await cluster.remove(refOf(live))
    this.#owners.set(key, owner)
    await cluster.apply(desired, POD_MANAGER)
    const pod = await cluster.get(POD, desired.metadata)
    if (pod === undefined || this.#closed) return
    const current = this.#pods.get(key)
    if (current === undefined) this.#startPod(pod, !isSame)
    else current.update(pod)
  }

  #startPod(pod: Pod, fresh: boolean): void {
    const { cluster, programs, log } = this.#options
    const key = keyOf(pod)
    const { namespace = '' } = pod.metadata
    const local = new LocalPod({
      pod,
      place: this.#book!.claim(key),
      state: this.#state,
      programs,
      env: this.#options.env ?? defaultEnvironment(),
      source: {
        configMap: (space, name) => cluster.cache(CONFIG_MAP).get(keyFor(space, name)),
        secret: (space, name) => cluster.cache(SECRET).get(keyFor(space, name)),
      },
      changed: () => this.#podChanged(key, namespace),
      warn: (message) => log?.warn({ pod: key }, message),
    })
    this.#pods.set(key, local)
    log?.info({ pod: key, address: local.endpoint.address }, 'Pod starts')
    local.start(fresh)
    this.#podChanged(key, namespace)
  }

  /** For good: its process, its object and its folder; claims and logs stay. */
  async #removePod(key: string): Promise<void> {
    const local = this.#pods.get(key)
    const { namespace, name } = splitKey(key)
    await local?.stop()
    this.#forget(key)
    this.#owners.delete(key)
    const place = this.#book!.get(key)
    if (place !== undefined) rmSync(podFolder(this.#state, place.id), { recursive: true, force: true })
    await this.#options.cluster.remove({ apiVersion: 'v1', kind: 'Pod', namespace, name })
  }

  #forget(key: string): void {
    this.#pods.delete(key)
    this.#queueServices(splitKey(key).namespace)
  }

  #podChanged(key: string, namespace: string): void {
    this.#queue.add(`pod ${key}`)
    this.#queueServices(namespace)
    const owner = this.#owners.get(key)
    if (owner !== undefined) this.#queue.add(`status ${owner}`)
  }

  #queueServices(namespace: string): void {
    for (const service of this.#options.cluster.cache(SERVICE).list(namespace)) {
      if (service.spec?.selector !== undefined) this.#queue.add(`service ${keyOf(service)}`)
    }
  }

  #refresh(kind: Kind, key: string): void {
    const { namespace, name } = splitKey(key)
    for (const pod of this.#pods.values()) {
      if (pod.endpoint.namespace === namespace) pod.refresh(`${kind.kind} ${name}`)
    }
  }

  #idsInUse(): Set<string> {
    const ids = new Set<string>()
    for (const workload of this.#workloads.flatMap(({ cache }) => cache.list())) {
      for (let index = 0; index < replicasOf(workload); index += 1) {
        const place = this.#book?.get(keyFor(workload.metadata.namespace, podName(workload, index)))
        if (place !== undefined) ids.add(place.id)
      }
    }
    return ids
  }
}
