import { setTimeout as pause } from 'node:timers/promises'
import { messageOf } from '../../src/core/errors.ts'
import type { Resource } from '../../src/core/resource.ts'
import { webImage } from '../../testbed/kubernetes/node/images.ts'
import { body, stream } from '../e2e/visit.ts'
import type { Stage } from './stage.ts'

/** A web site in a namespace, its onion, and who visits it. */

export const RESTRICTED: Record<string, string> = { 'pod-security.kubernetes.io/enforce': 'restricted' }

export function namespaceObject(name: string): object {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: RESTRICTED } }
}

/** The daemon of a namespace, told of the private network. */
export function daemonObject(stage: Stage, namespace: string, name = 'tor'): object {
  return {
    apiVersion: 'tor.fr0st.dev/v1alpha1',
    kind: 'TorDaemon',
    metadata: { namespace, name },
    spec: { options: stage.tor.options },
  }
}

/** A pod that serves a page that says `text`, and a Service on `port` in front of it. */
export function siteObjects(namespace: string, name: string, text: string, port: number): object[] {
  const command = `mkdir -p /tmp/www; echo '${text}' >/tmp/www/index.html; trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp/www & wait`
  return [
    podObject(namespace, name, ['sh', '-c', command]),
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace, name },
      spec: { selector: { app: name }, ports: [{ port, targetPort: 8080, protocol: 'TCP' }] },
    },
  ]
}

export function podObject(namespace: string, name: string, command: string[]): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name, labels: { app: name } },
    spec: {
      terminationGracePeriodSeconds: 2,
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'main',
          image: webImage.name,
          imagePullPolicy: 'Never',
          command,
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
        },
      ],
      volumes: [{ name: 'tmp', emptyDir: {} }],
    },
  }
}

export function onionObject(namespace: string, name: string, service: string, port: number): object {
  return {
    apiVersion: 'tor.fr0st.dev/v1alpha1',
    kind: 'OnionService',
    metadata: { namespace, name },
    spec: { ports: [{ virtualPort: 80, backend: { service, port } }] },
  }
}

/** Waits for a state, and says at the end what was seen instead. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined>,
  milliseconds = 120_000,
): Promise<T> {
  const end = performance.now() + milliseconds
  let seen = 'nothing'
  for (;;) {
    try {
      const found = await look()
      if (found !== undefined) return found
    } catch (error) {
      seen = messageOf(error)
    }
    if (performance.now() > end) throw new Error(`waited for ${what}; saw ${seen}`)
    await pause(100)
  }
}

export interface Condition {
  type: string
  status: string
  reason: string
  message: string
}

export function conditionOf(object: Resource, type: string): Condition | undefined {
  return (object.status as { conditions?: Condition[] } | undefined)?.conditions?.find(
    (one) => one.type === type,
  )
}

/** Waits until an object is Ready at its newest generation, and gives it. */
export function ready(stage: Stage, kind: string, namespace: string, name: string): Promise<Resource> {
  return until(`${kind} ${namespace}/${name} to be Ready`, async () => {
    const object = await stage.get(kind, name, namespace)
    const observed = (object.status as { observedGeneration?: number } | undefined)?.observedGeneration
    const condition = conditionOf(object, 'Ready')
    if (condition?.status === 'True' && observed === object.metadata.generation) return object
    throw new Error(JSON.stringify(object.status ?? 'no status'))
  })
}

/** The page behind an onion, asked for once on a circuit of its own. */
export async function visit(stage: Stage, hostname: string, port = 80, limit = 60_000): Promise<string> {
  return body(await stream(stage.tor.socksPort, hostname, port, limit), hostname)
}

/** Visits until the page says so; the first visits may come before every directory has the descriptor. */
export function visited(stage: Stage, hostname: string, text: string, port = 80): Promise<string> {
  return until(`${hostname} to say ${text}`, async () => {
    const seen = await visit(stage, hostname, port)
    if (seen.includes(text)) return seen
    throw new Error(seen.slice(0, 200))
  })
}

/** So long tor itself waits for an onion before it gives a stream up (SocksTimeout): so long a browser shows nothing. */
const PATIENCE_MS = 120_000

/** A visitor who comes again and again, as patient as tor is, and tries once more when a visit fails. */
export class Visitor {
  readonly #stop = new AbortController()
  readonly #running: Promise<void>
  visits = 0
  /** First tries that failed. */
  retried = 0
  /** The longest of the visits that came about, in milliseconds. */
  longest = 0
  /** Visits whose second try failed as well. */
  readonly failures: string[] = []

  constructor(stage: Stage, hostname: string, text: string, port = 80) {
    const once = async (): Promise<void> => {
      const began = performance.now()
      const seen = await visit(stage, hostname, port, PATIENCE_MS)
      if (!seen.includes(text)) throw new Error(`another page: ${seen.slice(0, 100)}`)
      this.longest = Math.max(this.longest, performance.now() - began)
    }
    const run = async (): Promise<void> => {
      while (!this.#stop.signal.aborted) {
        this.visits++
        try {
          await once()
        } catch {
          this.retried++
          await once().catch((error: unknown) => this.failures.push(messageOf(error)))
        }
        await pause(100)
      }
    }
    this.#running = run()
  }

  /** How it went, for a person. */
  get summary(): string {
    const { visits, retried, failures, longest } = this
    return `${visits} visits, ${retried} retried, ${failures.length} failed, the longest ${(longest / 1000).toFixed(1)} s`
  }

  /** Resolves once the visit that is under way has ended. */
  async end(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }
}
