import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { after } from 'node:test'
import { PosternError } from '../../src/core/errors.ts'
import type { KubernetesAccess } from './access.ts'
import { kubectl } from './kubectl.ts'
import { LazyCluster, type NodeClusterAccess } from './lazy-cluster.ts'

let own: LazyCluster | undefined
// Of the file that imports this, whatever test asks first.
after(() => own?.stop())

/**
 * The cluster of this test run: etcd, API server, controller manager and scheduler, started by whoever asks first. A test file
 * that runs without `global-setup.ts` gets one of its own, which ends with the file.
 */
export function sharedKubernetes(): Promise<KubernetesAccess> {
  const path = process.env.POSTERN_TEST_KUBERNETES
  return path ? (askFor(path, '/control-plane') as Promise<KubernetesAccess>) : ownCluster().access()
}

/** The same cluster with a node: pods run, Services and cluster DNS answer from here too. */
export function sharedNode(): Promise<NodeClusterAccess> {
  const path = process.env.POSTERN_TEST_KUBERNETES
  return path ? (askFor(path, '/node') as Promise<NodeClusterAccess>) : ownCluster().accessWithNode()
}

/**
 * Makes a namespace with a name that no other test has, its default ServiceAccount there; deleted after the test or suite it is
 * called in, without waiting for its end.
 */
export async function namespace(prefix = 'test', labels: Record<string, string> = {}): Promise<string> {
  const name = `${prefix}-${randomBytes(4).toString('hex')}`
  let made: KubernetesAccess | undefined
  // Before anything is awaited, while the caller's place in the test file is still known.
  after(async () => {
    // A cluster of this file's own ends with everything in it.
    if (made !== undefined && own === undefined) {
      await kubectl(['delete', 'namespace', name, '--wait=false', '--ignore-not-found'], made)
    }
  })
  const access = await sharedKubernetes()
  const manifest = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }
  await kubectl(['create', '-f', '-'], { ...access, input: JSON.stringify(manifest) })
  made = access
  await kubectl(['wait', '--for=create', 'serviceaccount/default', '-n', name, '--timeout=60s'], access)
  return name
}

function ownCluster(): LazyCluster {
  own ??= new LazyCluster()
  return own
}

function askFor(socketPath: string, path: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown) =>
      reject(
        new PosternError(
          'TestbedLost',
          `POSTERN_TEST_KUBERNETES names ${socketPath}, where nothing answers: unset it, or run with testbed/global-setup.ts`,
          { cause },
        ),
      )
    const asked = request({ socketPath, path, agent: false }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => (body += text))
      response.on('error', fail)
      response.on('end', () => {
        const answer: unknown = JSON.parse(body)
        if (response.statusCode === 200) return resolve(answer)
        const { code, message } = answer as { code?: string; message: string }
        reject(new PosternError(code ?? 'TestbedFailed', message))
      })
    })
    asked.on('error', fail)
    asked.end()
  })
}
