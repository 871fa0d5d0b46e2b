import { nextConditions } from '../../core/conditions.ts'
import { codeOf } from '../../core/errors.ts'
import { type Kind, keyFor, type Resource, refOf, sameJson } from '../../core/resource.ts'
import type { Cluster } from '../cluster.ts'
import { ENDPOINT_SLICE, POD, SERVICE } from '../kinds.ts'
import { endpointSlice, sliceName } from './pod-endpoints.ts'
import type { LocalPod } from './pod-instance.ts'
import { POD_MANAGER, replicasOf, type Workload } from './pod-template.ts'

/** Writes what the pods are like into the cluster: their own status, their workload's, and EndpointSlices. */
export class PodStatusWriter {
  readonly #cluster: Cluster
  readonly #pods: ReadonlyMap<string, LocalPod>
  /** What was written last; a cache may lag behind our own writes. */
  readonly #written = new Map<string, { uid: string | undefined; status: Record<string, unknown> }>()

  constructor(cluster: Cluster, pods: ReadonlyMap<string, LocalPod>) {
    this.#cluster = cluster
    this.#pods = pods
  }

  async writePod(key: string): Promise<void> {
    const local = this.#pods.get(key)
    if (local === undefined) {
      this.#written.delete(`Pod ${key}`)
      return
    }
    const stored = this.#cluster.cache(POD).get(key)
    // A newer pod of this name is told about by its own runner.
    if (stored !== undefined && stored.metadata.uid !== local.uid) return
    const before = this.#before(`Pod ${key}`, local.uid) ?? stored?.status
    await this.#write(`Pod ${key}`, local.object, local.status(before, Date.now()))
  }

  async writeWorkload(kind: Kind, key: string, workload: Workload, pods: readonly LocalPod[]): Promise<void> {
    const wanted = replicasOf(workload)
    const ready = pods.filter((pod) => pod.ready).length
    const { generation, uid } = workload.metadata
    const name = `${kind.kind} ${key}`
    const before = this.#before(name, uid) ?? workload.status
    const enough = ready >= wanted
    const status = {
      ...(generation === undefined ? {} : { observedGeneration: generation }),
      replicas: pods.length,
      updatedReplicas: pods.length,
      readyReplicas: ready,
      availableReplicas: ready,
      conditions: nextConditions(
        before?.conditions as Parameters<typeof nextConditions>[0],
        [
          {
            type: 'Available',
            status: enough ? 'True' : 'False',
            reason: enough ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable',
            message: `${ready} of ${wanted} pods are ready.`,
          },
        ],
        generation,
        Date.now(),
      ),
    }
    await this.#write(name, workload, status)
  }

  async writeService(key: string): Promise<void> {
    const service = this.#cluster.cache(SERVICE).get(key)
    if (service === undefined) return // Its slice goes with it, by its owner reference.
    const { namespace, name } = service.metadata
    if (Object.keys(service.spec?.selector ?? {}).length > 0) {
      const endpoints = [...this.#pods.values()].map((pod) => pod.endpoint)
      await this.#cluster.apply(endpointSlice(service, endpoints), POD_MANAGER)
      return
    }
    const slice = this.#cluster.cache(ENDPOINT_SLICE).get(keyFor(namespace, sliceName(name)))
    // Without a selector the endpoints are the user's; only a slice that we made before goes.
    const isOurs = slice?.metadata.labels?.['endpointslice.kubernetes.io/managed-by'] === POD_MANAGER
    if (slice !== undefined && isOurs) await this.#cluster.remove(refOf(slice))
  }

  #before(name: string, uid: string | undefined): Record<string, unknown> | undefined {
    const written = this.#written.get(name)
    return written?.uid === uid ? written?.status : undefined
  }

  async #write(name: string, object: Resource, status: Record<string, unknown>): Promise<void> {
    const { uid } = object.metadata
    if (sameJson(this.#before(name, uid), status)) return
    try {
      await this.#cluster.applyStatus({ ref: refOf(object), status }, POD_MANAGER)
      this.#written.set(name, { uid, status })
    } catch (error) {
      // Deleted in the meantime: the watch tells what to do.
      if (codeOf(error) !== 'NotFound') throw error
    }
  }
}
