import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type ConditionInput, nextConditions, timestamp } from '../../core/conditions.ts'
import { codeOf, messageOf } from '../../core/errors.ts'
import { keyOf } from '../../core/resource.ts'
import type { Pod } from '../kinds.ts'
import type { PodPlace } from './pod-address.ts'
import type { PodEndpoint } from './pod-endpoints.ts'
import { CONFIG_ERROR, type PodFacts } from './pod-fields.ts'
import { type LaunchContext, launchOf } from './pod-launch.ts'
import { PodLogFile } from './pod-log.ts'
import { checkSpec, Probe } from './pod-probes.ts'
import { ContainerProcess } from './pod-process.ts'
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

interface Running {
  container: Container
  process: ContainerProcess
  probes: { stop(): void }[]
  /** pid that the probes ask. */
  probed: number | undefined
  ready: boolean
  /** What a failing probe says. */
  unready: string
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
  readonly #containers: Running[]
  readonly #references: Set<string>
  readonly #born = Date.now()
  #stopping = false

  constructor(options: LocalPodOptions) {
    const { pod, place, state } = options
    const { namespace = '', name } = pod.metadata
    this.key = keyOf(pod)
    this.folder = join(state, 'p', place.id)
    this.#options = options
    this.#facts = { pod, address: place.address }
    this.#volumes = new PodVolumes(this.folder, join(state, 'claims', namespace), options.source)
    this.#log = new PodLogFile(logPath(state, namespace, name))
    this.#references = referencesOf(this.#facts)
    this.#containers = specOf(pod).containers.map((container) => this.#prepare(container))
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
    const asked = specOf(this.#facts.pod).terminationGracePeriodSeconds
    const grace = Math.min(Math.max(Number(asked ?? DEFAULT_GRACE) || 0, 0), LONGEST_GRACE) * 1000
    for (const running of this.#containers) endProbes(running)
    await Promise.all(this.#containers.map(({ process }) => process.stop(grace)))
    this.#log.close()
  }

  /** core/v1 PodStatus. @param before of the stored object; its transition times are kept */
  status(before: Record<string, unknown> | undefined, now: number): Record<string, unknown> {
    const begun = this.#containers.some(({ process }) => process.running || process.restarts > 0)
    const held = this.#containers.find(({ process }) => process.state.waiting !== undefined)?.process.state
      .waiting
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
      containerStatuses: this.#containers.map(({ container, process, ready }) => ({
        name: container.name,
        image: container.image ?? '',
        ready: ready && !this.#stopping,
        restartCount: process.restarts,
        state: process.state,
      })),
    }
  }

  #prepare(container: Container): Running {
    const { state, source, programs, env, changed } = this.#options
    const process = new ContainerProcess({
      log: this.#log,
      state,
      identity: `${this.key}/${container.name}`,
      launch: () => {
        checkSpec(specOf(this.#facts.pod))
        // A restarted container sees what its volumes should hold now, or waits.
        this.#volumes.sync(this.#facts)
        const context = {
          facts: this.#facts,
          folder: this.folder,
          volumes: this.#volumes,
          source,
          programs,
          env,
        }
        return launchOf(container, context)
      },
      changed: () => {
        this.#followProcess(running)
        changed()
      },
    })
    const running: Running = { container, process, probes: [], probed: undefined, ready: false, unready: '' }
    return running
  }

  #advance(): void {
    let held: unknown
    try {
      checkSpec(specOf(this.#facts.pod))
      this.#volumes.sync(this.#facts)
    } catch (error) {
      held = error
      const isRunning = this.#containers.some(({ process }) => process.running)
      // As in a cluster, running containers keep the files that they had.
      if (isRunning) this.#options.warn(messageOf(error))
    }
    for (const { process } of this.#containers) {
      if (held === undefined) process.start()
      else
        process.hold(codeOf(held) === CONFIG_ERROR ? CONFIG_ERROR : 'CreateContainerError', messageOf(held))
    }
  }

  #followProcess(running: Running): void {
    const { process, container } = running
    const pid = process.running ? process.pid : undefined
    if (running.probed === pid) return
    endProbes(running)
    running.probed = pid
    running.ready = pid !== undefined && container.readinessProbe === undefined && !container.startupProbe
    running.unready = pid === undefined ? '' : 'The readiness probe did not pass yet.'
    if (pid === undefined || this.#stopping) return
    if (container.startupProbe !== undefined) this.#watchStartup(running)
    else this.#watchSteady(running)
  }

  #watchStartup(running: Running): void {
    const spec = running.container.startupProbe!
    const period = Math.max(0.1, spec.periodSeconds ?? 10)
    const allowed = (spec.initialDelaySeconds ?? 0) + period * (spec.failureThreshold ?? 3)
    this.#probe(running, 'startup', spec, (passed, message) => {
      if (passed) {
        endProbes(running)
        running.ready = running.container.readinessProbe === undefined
        this.#watchSteady(running)
      } else {
        running.unready = `Startup probe: ${message}.`
      }
      this.#options.changed()
    })
    const timer = setTimeout(
      () => this.#endUnhealthy(running, 'was too slow for its startup probe'),
      allowed * 1000,
    )
    running.probes.push({ stop: () => clearTimeout(timer) })
  }

  #watchSteady(running: Running): void {
    const { readinessProbe, livenessProbe } = running.container
    if (readinessProbe !== undefined) {
      this.#probe(running, 'readiness', readinessProbe, (passed, message) => {
        running.ready = passed
        running.unready = passed ? '' : `Readiness probe: ${message}.`
        this.#options.changed()
      })
    }
    if (livenessProbe !== undefined) {
      this.#probe(running, 'liveness', livenessProbe, (passed, message) => {
        if (!passed) this.#endUnhealthy(running, `failed its liveness probe (${message})`)
      })
    }
  }

  #probe(
    running: Running,
    kind: 'readiness' | 'liveness' | 'startup',
    spec: ConstructorParameters<typeof Probe>[0]['spec'],
    verdict: (passed: boolean, message: string) => void,
  ): void {
    const { container } = running
    const probe = new Probe({ spec, address: this.#facts.address, container, kind, verdict })
    running.probes.push(probe)
    probe.start()
  }

  #endUnhealthy({ process }: Running, why: string): void {
    process.restart(why, DEFAULT_GRACE * 1000)
  }
}

/** Where the output of a pod's containers is kept, under the state. */
export function logPath(state: string, namespace: string, name: string): string {
  return join(state, 'logs', `${namespace}_${name}.log`)
}

function endProbes(running: Running): void {
  for (const probe of running.probes) probe.stop()
  running.probes = []
}
