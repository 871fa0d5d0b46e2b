import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type ConditionInput, nextConditions, timestamp } from '../../core/conditions.ts'
import { codeOf, messageOf } from '../../core/errors.ts'
import { keyOf } from '../../core/resource.ts'
import type { Pod } from '../kinds.ts'
import type { PodPlace } from './pod-address.ts'
import { LocalContainer } from './pod-container.ts'
import type { PodEndpoint } from './pod-endpoints.ts'
import { CONFIG_ERROR, type PodFacts } from './pod-fields.ts'
import { type LaunchContext, launchOf } from './pod-launch.ts'
import { PodLogFile } from './pod-log.ts'
import { checkSpec } from './pod-probes.ts'
import { logPath, podFolder } from './pod-state.ts'
import { type Container, specOf } from './pod-template.ts'
import { type ObjectSource, PodVolumes, referencesOf } from './pod-volumes.ts'

export interface LocalPodOptions {
  pod: Pod
  place: PodPlace
  /** Real path of the state. */
  state: string
  source: ObjectSource
  programs: LaunchContext['programs']
  env: LaunchContext['env']
  /** After every change that a status may show. */
  changed: () => void
  warn: (message: string) => void
}

const DEFAULT_GRACE = 10
const LONGEST_GRACE = 30

/** One pod on this machine: its folder, its volumes, its containers and what they say of themselves. */
export class LocalPod {
  readonly key: string
  readonly folder: string
  readonly #options: LocalPodOptions
  readonly #facts: PodFacts
  readonly #volumes: PodVolumes
  readonly #log: PodLogFile
  readonly #containers: LocalContainer[]
  readonly #references: Set<string>
  readonly #born = Date.now()
  #held: { reason: string; message: string } | undefined
  #stopping = false

  constructor(options: LocalPodOptions) {
    const { pod, place, state } = options
    const { namespace = '', name } = pod.metadata
    this.key = keyOf(pod)
    this.folder = podFolder(state, place.id)
    this.#options = options
    this.#facts = { pod, address: place.address }
    this.#volumes = new PodVolumes(this.folder, join(state, 'claims', namespace), options.source)
    this.#log = new PodLogFile(logPath(state, namespace, name))
    this.#references = referencesOf(this.#facts)
    const { containers } = specOf(pod)
    this.#containers = (Array.isArray(containers) ? containers : []).map((container) =>
      this.#prepare(container),
    )
  }

  get uid(): string | undefined {
    return this.#facts.pod.metadata.uid
  }

  get object(): Pod {
    return this.#facts.pod
  }

  get ready(): boolean {
    return !this.#stopping && this.#containers.length > 0 && this.#containers.every(({ ready }) => ready)
  }

  get endpoint(): PodEndpoint {
    const { metadata } = this.#facts.pod
    return {
      name: metadata.name,
      namespace: metadata.namespace ?? '',
      labels: metadata.labels ?? {},
      address: this.#facts.address,
      ready: this.ready,
      terminating: this.#stopping,
      containers: specOf(this.#facts.pod).containers,
    }
  }

  /** @param fresh a new pod: nothing of an earlier one of this name is kept, but for claims */
  start(fresh: boolean): void {
    if (fresh || !existsSync(this.folder)) rmSync(this.folder, { recursive: true, force: true })
    else this.#volumes.dropMemory(specOf(this.#facts.pod).volumes ?? [])
    mkdirSync(this.folder, { recursive: true, mode: 0o700 })
    this.#advance()
  }

  /** A ConfigMap or Secret of the pod's namespace changed: files follow at once, waiting containers try again. */
  refresh(reference: string): void {
    if (!this.#stopping && this.#references.has(reference)) this.#advance()
  }

  /** The Pod object changed without being replaced: its labels and annotations may be mounted. */
  update(pod: Pod): void {
    this.#facts.pod = pod
    if (!this.#stopping) this.#advance()
  }

  async stop(): Promise<void> {
    this.#stopping = true
    this.#options.changed()
    await Promise.all(this.#containers.map((container) => container.stop(this.#grace)))
    this.#log.close()
  }

  /** core/v1 PodStatus. @param before of the stored object; its transition times are kept */
  status(before: Record<string, unknown> | undefined, now: number): Record<string, unknown> {
    const begun = this.#containers.some(({ process }) => process.running || process.restarts > 0)
    const waiting = this.#containers.map(({ process }) => process.state.waiting)
    const held = waiting.find((state) => state !== undefined) ?? this.#held
    const unready = this.#containers.find(({ ready }) => !ready)
    const condition = (type: string): ConditionInput =>
      this.ready
        ? { type, status: 'True', reason: 'ContainersReady', message: 'All containers are ready.' }
        : {
            type,
            status: 'False',
            reason: held?.reason ?? 'ContainersNotReady',
            message: held?.message ?? unready?.unready ?? 'The containers are not ready yet.',
          }
    return {
      phase: begun ? 'Running' : 'Pending',
      podIP: this.#facts.address,
      podIPs: [{ ip: this.#facts.address }],
      startTime: timestamp(this.#born),
      conditions: nextConditions(
        before?.conditions as Parameters<typeof nextConditions>[0],
        [condition('ContainersReady'), condition('Ready')],
        undefined,
        now,
      ),
      containerStatuses: this.#containers.map(({ status }) => status),
    }
  }

  #prepare(container: Container): LocalContainer {
    const { state, source, programs, env, changed } = this.#options
    return new LocalContainer({
      container,
      address: this.#facts.address,
      grace: this.#grace,
      log: this.#log,
      state,
      identity: `${this.key}/${container.name}`,
      changed,
      launch: () => {
        checkSpec(specOf(this.#facts.pod))
        // A restarted container sees what its volumes should hold now, or waits.
        this.#volumes.sync(this.#facts)
        const { folder } = this
        return launchOf(container, {
          facts: this.#facts,
          folder,
          volumes: this.#volumes,
          source,
          programs,
          env,
        })
      },
    })
  }

  /** Milliseconds between SIGTERM and SIGKILL. */
  get #grace(): number {
    const asked = Number(specOf(this.#facts.pod).terminationGracePeriodSeconds ?? DEFAULT_GRACE)
    return Math.min(Math.max(asked || 0, 0), LONGEST_GRACE) * 1000
  }

  #advance(): void {
    this.#held = undefined
    try {
      checkSpec(specOf(this.#facts.pod))
      this.#volumes.sync(this.#facts)
    } catch (error) {
      const reason = codeOf(error) === CONFIG_ERROR ? CONFIG_ERROR : 'CreateContainerError'
      this.#held = { reason, message: messageOf(error) }
    }
    if (this.#held !== undefined && this.#containers.some(({ process }) => process.running)) {
      // As in a cluster, running containers keep the files that they had.
      this.#options.warn(this.#held.message)
    }
    for (const { process } of this.#containers) {
      if (this.#held === undefined) process.start()
      else process.hold(this.#held.reason, this.#held.message)
    }
  }
}
