import { readFile } from 'node:fs/promises'
import { Agent, request } from 'undici'
import { parse } from 'yaml'
import { PosternError } from '../../../src/core/errors.ts'

/** Any object of the API, as JSON. */
export interface ClusterObject {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: string; labels?: Record<string, string> }
  [field: string]: unknown
}

/** The few requests with which the test bed sets itself up and looks at itself. */
export interface TestApi {
  /** The JSON at a path such as /api/v1/nodes; undefined if there is none. */
  get(path: string): Promise<unknown>
  /** Server-side apply, forced. Only for kinds whose plural is formed by an s. */
  apply(object: ClusterObject): Promise<void>
  /** Deletes what is at a path, and in the background what it owns. */
  remove(path: string): Promise<void>
  close(): Promise<void>
}

interface Kubeconfig {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[]
  users: { user: { 'client-certificate-data': string; 'client-key-data': string } }[]
}

/** A client with the certificates of a kubeconfig, which must be inlined. */
export async function openApi(kubeconfig: string): Promise<TestApi> {
  const { clusters, users } = parse(await readFile(kubeconfig, 'utf8')) as Kubeconfig
  const cluster = clusters[0]?.cluster
  const user = users[0]?.user
  if (cluster === undefined || user === undefined) {
    throw new PosternError('BadKubeconfig', `${kubeconfig} names no cluster or no user`)
  }
  const decoded = (text: string) => Buffer.from(text, 'base64')
  const dispatcher = new Agent({
    connect: {
      ca: decoded(cluster['certificate-authority-data']),
      cert: decoded(user['client-certificate-data']),
      key: decoded(user['client-key-data']),
    },
    headersTimeout: 10_000,
    bodyTimeout: 10_000,
  })
  const send = async (method: 'GET' | 'PATCH' | 'DELETE', path: string, object?: unknown) => {
    const answer = await request(`${cluster.server}${path}`, {
      method,
      dispatcher,
      ...(object === undefined
        ? {}
        : { body: JSON.stringify(object), headers: { 'content-type': 'application/apply-patch+yaml' } }),
    })
    const text = await answer.body.text()
    if (answer.statusCode === 404 && method !== 'PATCH') return undefined
    if (answer.statusCode >= 300) {
      throw new PosternError('TestApi', `${method} ${path}: ${answer.statusCode} ${text.slice(0, 1000)}`)
    }
    return JSON.parse(text) as unknown
  }
  return {
    get: (path) => send('GET', path),
    apply: async (object) => {
      await send('PATCH', `${pathOf(object)}?fieldManager=testbed&force=true`, object)
    },
    remove: async (path) => {
      await send('DELETE', `${path}?propagationPolicy=Background`)
    },
    close: () => dispatcher.close(),
  }
}

function pathOf({ apiVersion, kind, metadata }: ClusterObject): string {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  const namespace = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`
  return `${group}${namespace}/${kind.toLowerCase()}s/${metadata.name}`
}
