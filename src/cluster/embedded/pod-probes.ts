import { get as httpGet, type IncomingMessage } from 'node:http'
import { get as httpsGet } from 'node:https'
import { connect } from 'node:net'
import { messageOf } from '../../core/errors.ts'
import { configError } from './pod-fields.ts'
import { type Container, type PodSpec, type ProbeSpec, portOf } from './pod-template.ts'

export interface ProbeOptions {
  spec: ProbeSpec
  address: string
  container: Container
  /** readiness: starts failed and is asked quickly until it passes; liveness: starts passed. */
  kind: 'readiness' | 'liveness' | 'startup'
  /** When the verdict changes, and when the words of a failing one do. */
  verdict: (passed: boolean, message: string) => void
}

/** A pod that may turn ready is asked this often, in milliseconds: nobody should wait for a period to pass. */
const EAGER = 100

/** Asks one probe of a running container again and again until stopped. */
export class Probe {
  readonly #options: ProbeOptions
  readonly #stop = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #passed: boolean
  #streak = 0
  #message = ''

  constructor(options: ProbeOptions) {
    this.#options = options
    this.#passed = options.kind === 'liveness'
  }

  start(): void {
    const { kind, spec } = this.#options
    this.#later(kind === 'liveness' ? seconds(spec.initialDelaySeconds, 0) : 0)
  }

  stop(): void {
    this.#stop.abort()
    clearTimeout(this.#timer)
  }

  #later(delay: number): void {
    if (!this.#stop.signal.aborted) this.#timer = setTimeout(() => void this.#ask(), delay)
  }

  async #ask(): Promise<void> {
    const { spec, address, container, verdict } = this.#options
    const failure = await askOnce(spec, address, container, this.#stop.signal)
    if (this.#stop.signal.aborted) return
    const success = failure === undefined
    this.#streak = success === this.#passed ? 0 : this.#streak + 1
    const threshold = success ? (spec.successThreshold ?? 1) : (spec.failureThreshold ?? 3)
    const turned = this.#streak >= Math.max(1, threshold)
    if (turned) {
      this.#passed = success
      this.#streak = 0
    }
    const message = failure ?? ''
    if (turned || (!this.#passed && message !== this.#message)) verdict(this.#passed, message)
    this.#message = message
    const eager = this.#options.kind !== 'liveness' && !this.#passed
    this.#later(eager ? EAGER : Math.max(EAGER, seconds(spec.periodSeconds, 10)))
  }
}

/** @throws PosternError CreateContainerConfigError for a probe that local pods cannot ask */
function checkProbe(spec: ProbeSpec, container: Container): void {
  const target = spec.httpGet ?? spec.tcpSocket
  if (target === undefined) {
    throw configError(
      `A probe of container "${container.name}" works only in a cluster. Use httpGet or tcpSocket.`,
    )
  }
  const port = portOf([container], target.port)
  if (port === undefined || port < 1 || port > 65_535) {
    throw configError(
      `A probe of container "${container.name}" names port "${target.port}". Add it to its ports.`,
    )
  }
}

/** Why the probe failed, or undefined when it passed: HTTP 200 to 399, or a TCP connection. */
async function askOnce(
  spec: ProbeSpec,
  address: string,
  container: Container,
  stop: AbortSignal,
): Promise<string | undefined> {
  const limit = seconds(spec.timeoutSeconds, 1)
  const signal = AbortSignal.any([stop, AbortSignal.timeout(limit)])
  try {
    if (spec.httpGet === undefined) return await askTcp(spec, address, container, signal)
    return await askHttp(spec.httpGet, address, container, signal)
  } catch (error) {
    return signal.aborted ? `no answer within ${limit} ms` : messageOf(error)
  }
}

function askHttp(
  target: NonNullable<ProbeSpec['httpGet']>,
  address: string,
  container: Container,
  signal: AbortSignal,
): Promise<string | undefined> {
  const headers = Object.fromEntries((target.httpHeaders ?? []).map(({ name, value }) => [name, value]))
  const path = target.path === undefined || target.path === '' ? '/' : target.path
  const options = {
    host: target.host ?? address,
    port: portOf([container], target.port),
    path: path.startsWith('/') ? path : `/${path}`,
    headers: { 'user-agent': 'kube-probe/postern', connection: 'close', ...headers },
    agent: false,
    signal,
  }
  return new Promise((resolve, reject) => {
    const answered = (response: IncomingMessage): void => {
      const status = response.statusCode ?? 0
      response.destroy()
      resolve(status >= 200 && status < 400 ? undefined : `HTTP ${status}`)
    }
    // As the kubelet: a probe asks whether someone is there, not who.
    const request =
      target.scheme === 'HTTPS'
        ? httpsGet({ ...options, rejectUnauthorized: false }, answered)
        : httpGet(options, answered)
    request.on('error', reject)
  })
}

function askTcp(
  spec: ProbeSpec,
  address: string,
  container: Container,
  signal: AbortSignal,
): Promise<undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<undefined>()
  const port = portOf([container], spec.tcpSocket?.port ?? 0) ?? 0
  const socket = connect({ host: spec.tcpSocket?.host ?? address, port, signal })
  socket.once('connect', () => {
    socket.destroy()
    resolve(undefined)
  })
  socket.once('error', reject)
  return promise
}

function seconds(value: number | undefined, otherwise: number): number {
  const set = typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : otherwise
  return Math.min(set, 86_400) * 1000
}

/** @throws PosternError CreateContainerConfigError for what local pods cannot do */
export function checkSpec(spec: PodSpec): void {
  if (!Array.isArray(spec.containers) || spec.containers.length === 0) {
    throw configError('The pod template has no containers. Add one.')
  }
  if ((spec.initContainers ?? []).length > 0) {
    throw configError('Init containers run only in a cluster. Remove them from the pod template.')
  }
  for (const container of spec.containers) {
    for (const probe of [container.readinessProbe, container.livenessProbe, container.startupProbe]) {
      if (probe !== undefined) checkProbe(probe, container)
    }
  }
}
