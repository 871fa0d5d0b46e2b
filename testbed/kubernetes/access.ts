import { randomBytes } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { issueClient, writeKubeconfig } from './pki.ts'
import type { Kubeconfigs, Network } from './types.ts'

/** How to use a cluster that runs: plain data, for processes other than the one that started it. Paths are absolute. */
export interface KubernetesAccess {
  /** https://10.201.N.2:6443 */
  url: string
  /** Of an admin (group system:masters, which RBAC does not hold back). */
  kubeconfig: string
  /** Path of the CA's certificate, PEM. */
  ca: string
  /** Path of the admin's client certificate and key, PEM. */
  adminCertificate: string
  adminKey: string
  /** Folder of all certificates and keys, the CA's too. */
  pki: string
  kubeconfigs: Kubeconfigs
  network: Network
  nodeName: string
  /** The run's folder. */
  state: string
}

export interface User {
  name: string
  groups: readonly string[]
  /** Path. */
  kubeconfig: string
  /** PEM */
  certificate: string
  /** PEM, PKCS 8 */
  key: string
}

export function accessOf(
  known: Pick<KubernetesAccess, 'state' | 'url' | 'pki' | 'kubeconfigs' | 'network' | 'nodeName'>,
): KubernetesAccess {
  const file = (name: string) => join(known.pki, name)
  return {
    ...known,
    kubeconfig: known.kubeconfigs.admin,
    ca: file('ca.crt'),
    adminCertificate: file('admin.crt'),
    adminKey: file('admin.key'),
  }
}

/**
 * A user that the API server knows by a client certificate. For the rights of a ServiceAccount the name is
 * `system:serviceaccount:NAMESPACE:NAME`, the groups `system:serviceaccounts` and `system:serviceaccounts:NAMESPACE`.
 */
export async function newUser(
  access: KubernetesAccess,
  name: string,
  groups: readonly string[] = [],
): Promise<User> {
  const { certificate, key } = await issueClient(access.pki, name, groups)
  const folder = join(access.state, 'users')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const kubeconfig = join(folder, `${randomBytes(8).toString('hex')}.kubeconfig`)
  await writeKubeconfig(kubeconfig, {
    url: access.url,
    ca: await readFile(access.ca, 'utf8'),
    user: { name, certificate, key },
  })
  return { name, groups, kubeconfig, certificate, key }
}

/** The same with the groups that the API server gives a ServiceAccount. */
export function actAsServiceAccount(
  access: KubernetesAccess,
  namespace: string,
  name: string,
): Promise<User> {
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated']
  return newUser(access, `system:serviceaccount:${namespace}:${name}`, groups)
}
