import { Probe, type ProbeOptions } from './pod-probes.ts'
import { ContainerProcess, type ProcessOptions } from './pod-process.ts'
import type { Container, ProbeSpec } from './pod-template.ts'

export interface LocalContainerOptions extends ProcessOptions {
  container: Container
  address: string
  /** How long an unhealthy process may take to end, in milliseconds. */
  grace: number
}

/** A container's process together with its probes, which follow it from one start to the next. */
export class LocalContainer {
  readonly spec: Container
  readonly process: ContainerProcess
  readonly #options: LocalContainerOptions
  #probes: { stop(): void }[] = []
  /** Id of the process that the probes ask. */
  #probed: number | undefined
  #ready = false
  #unready = ''
  #ending = false

  constructor(options: LocalContainerOptions) {
    this.spec = options.container
    this.#options = options
    this.process = new ContainerProcess({
      ...options,
      changed: () => {
        this.#follow()
        options.changed()
      },
    })
  }

  get ready(): boolean {
    return this.#ready
  }

  /** Why it is not ready, while it runs. */
  get unready(): string {
    return this.#unready
  }

  /** core/v1 ContainerStatus */
  get status(): Record<string, unknown> {
    return {
      name: this.spec.name,
      image: this.spec.image ?? '',
      ready: this.#ready && !this.#ending,
      restartCount: this.process.restarts,
      state: this.process.state,
    }
  }

  /** @param grace milliseconds */
  async stop(grace: number): Promise<void> {
    this.#ending = true
    this.#endProbes()
    await this.process.stop(grace)
  }

  #follow(): void {
    const pid = this.process.running ? this.process.pid : undefined
    if (this.#probed === pid) return
    this.#endProbes()
    this.#probed = pid
    const { readinessProbe, startupProbe } = this.spec
    this.#ready = pid !== undefined && readinessProbe === undefined && startupProbe === undefined
    this.#unready = pid === undefined || this.#ready ? '' : 'The readiness probe did not pass yet.'
    if (pid === undefined || this.#ending) return
    if (startupProbe === undefined) this.#watchSteady()
    else this.#watchStartup(startupProbe)
  }

  #watchStartup(spec: ProbeSpec): void {
    const period = Math.max(0.1, spec.periodSeconds ?? 10)
    const allowed = (spec.initialDelaySeconds ?? 0) + period * (spec.failureThreshold ?? 3)
    const timer = setTimeout(() => this.#end('was too slow for its startup probe'), allowed * 1000)
    this.#probes.push({ stop: () => clearTimeout(timer) })
    this.#probe('startup', spec, (passed, message) => {
      if (passed) {
        this.#endProbes()
        this.#ready = this.spec.readinessProbe === undefined
        this.#watchSteady()
      } else {
        this.#unready = `Startup probe: ${message}.`
      }
      this.#options.changed()
    })
  }

  #watchSteady(): void {
    const { readinessProbe, livenessProbe } = this.spec
    if (readinessProbe !== undefined) {
      this.#probe('readiness', readinessProbe, (passed, message) => {
        this.#ready = passed
        this.#unready = passed ? '' : `Readiness probe: ${message}.`
        this.#options.changed()
      })
    }
    if (livenessProbe !== undefined) {
      this.#probe('liveness', livenessProbe, (passed, message) => {
        if (!passed) this.#end(`failed its liveness probe (${message})`)
      })
    }
  }

  #probe(kind: ProbeOptions['kind'], spec: ProbeSpec, verdict: ProbeOptions['verdict']): void {
    const { address } = this.#options
    const probe = new Probe({ spec, address, container: this.spec, kind, verdict })
    this.#probes.push(probe)
    probe.start()
  }

  #end(why: string): void {
    this.process.restart(why, this.#options.grace)
  }

  #endProbes(): void {
    for (const probe of this.#probes) probe.stop()
    this.#probes = []
  }
}
