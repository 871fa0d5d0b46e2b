import { homedir } from 'node:os'
import { ApiClient } from './api-client.ts'
import { inClusterSettings, runsInCluster } from './in-cluster.ts'
import { kubeconfigFiles, kubeconfigSettings } from './kubeconfig.ts'
import type { ConnectionSettings } from './settings.ts'
import { Transport, type TransportOptions } from './transport.ts'

export interface Choice {
  /** Path of a kubeconfig. */
  kubeconfig?: string
  /** Name of a context. */
  context?: string
  env?: NodeJS.ProcessEnv
  home?: string
  /** Where the pod's service account is mounted. */
  serviceAccount?: string
}

/**
 * Finds the API server: by the kubeconfig that is named, by `KUBECONFIG`, by the pod that this process runs in, by
 * `~/.kube/config`, whichever is first.
 *
 * @throws PosternError `KubeconfigNotFound`, `KubeconfigInvalid`, `InClusterInvalid`
 */
export function loadSettings(choice: Choice = {}): ConnectionSettings {
  const { kubeconfig, context, env = process.env, home = homedir(), serviceAccount } = choice
  const named = kubeconfig !== undefined || context !== undefined || Boolean(env.KUBECONFIG)
  if (!named && runsInCluster(env)) return inClusterSettings(env, serviceAccount)
  return kubeconfigSettings(kubeconfigFiles(kubeconfig, env, home), context)
}

/** Opens nothing yet: the first call connects. */
export function connect(settings: ConnectionSettings, options: TransportOptions): ApiClient {
  return new ApiClient(new Transport(settings, options))
}
