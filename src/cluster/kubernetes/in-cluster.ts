import { join } from 'node:path'
import { PosternError } from '../../core/errors.ts'
import { cleanToken, readNamedFile, readPem } from './pem.ts'
import type { ConnectionSettings } from './settings.ts'

export const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Whether this process runs in a pod, by what the kubelet puts into every container's environment. */
export function runsInCluster(env: NodeJS.ProcessEnv): boolean {
  return Boolean(env.KUBERNETES_SERVICE_HOST) && Boolean(env.KUBERNETES_SERVICE_PORT)
}

/**
 * Settings of the pod's own service account.
 *
 * @throws PosternError `InClusterInvalid` when the pod has no token or certificate authority mounted
 */
export function inClusterSettings(
  env: NodeJS.ProcessEnv,
  folder: string = SERVICE_ACCOUNT_FOLDER,
): ConnectionSettings {
  const host = env.KUBERNETES_SERVICE_HOST ?? ''
  const port = env.KUBERNETES_SERVICE_PORT ?? ''
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`
  if (!/^[1-9]\d{0,4}$/.test(port) || !URL.canParse(server)) {
    throw new PosternError(
      'InClusterInvalid',
      `KUBERNETES_SERVICE_HOST '${host}' and KUBERNETES_SERVICE_PORT '${port}' are no address: leave both as the kubelet sets them, or name a kubeconfig`,
    )
  }
  const where = "the pod's service account"
  const ca = { where, file: join(folder, 'ca.crt') }
  const tokenFile = join(folder, 'token')
  let namespace: string
  try {
    readPem(ca, 'CERTIFICATE')
    cleanToken(readNamedFile(tokenFile, where), tokenFile)
    namespace = readNamedFile(join(folder, 'namespace'), where).trim()
  } catch (error) {
    throw new PosternError(
      'InClusterInvalid',
      `${(error as Error).message}; a pod that talks to the API server needs automountServiceAccountToken: true`,
      { cause: error },
    )
  }
  return {
    source: where,
    server,
    namespace: namespace === '' ? 'default' : namespace,
    tls: { ca, insecure: false },
    user: { tokenFile },
  }
}
