import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { CertificateAuthority, type KeyPair, type LeafRequest, makeAuthority } from './certificates.ts'
import type { Kubeconfigs, Network } from './types.ts'

/**
 * Writes the files that `Testbed.pki` names: two CAs (the cluster's and the front proxy's), what they signed, and the key of
 * ServiceAccount tokens.
 */
export async function writePki(folder: string, network: Network, nodeName: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const write = async (name: string, { certificate, key }: KeyPair) => {
    await writeFile(join(folder, `${name}.crt`), certificate, { mode: 0o644 })
    await writeFile(join(folder, `${name}.key`), key, { mode: 0o600 })
  }
  const ca = makeAuthority({ commonName: 'kubernetes' })
  const frontProxy = makeAuthority({ commonName: 'front-proxy' })
  await write('ca', ca.pair)
  await write('front-proxy-ca', frontProxy.pair)
  await write('front-proxy', frontProxy.issue({ commonName: 'front-proxy-client', usage: 'client' }))
  const service = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc']
  const names = ['localhost', ...service, 'kubernetes.default.svc.cluster.local', '127.0.0.1']
  const leaves: Record<string, LeafRequest> = {
    apiserver: {
      commonName: 'kube-apiserver',
      usage: 'server',
      names: [...new Set([...names, network.nodeAddress, network.apiAddress])],
    },
    'apiserver-kubelet': {
      commonName: 'kube-apiserver-kubelet-client',
      organizations: ['system:masters'],
      usage: 'client',
    },
    admin: { commonName: 'admin', organizations: ['system:masters'], usage: 'client' },
    'controller-manager': { commonName: 'system:kube-controller-manager', usage: 'client' },
    scheduler: { commonName: 'system:kube-scheduler', usage: 'client' },
    proxy: { commonName: 'system:kube-proxy', usage: 'client' },
    kubelet: { commonName: `system:node:${nodeName}`, organizations: ['system:nodes'], usage: 'client' },
    'kubelet-serving': {
      commonName: `system:node:${nodeName}`,
      organizations: ['system:nodes'],
      usage: 'server',
      names: [nodeName, network.nodeAddress],
    },
  }
  for (const [name, request] of Object.entries(leaves)) await write(name, ca.issue(request))
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  await writeFile(join(folder, 'sa.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }), {
    mode: 0o600,
  })
  await writeFile(join(folder, 'sa.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
}

/** A kubeconfig for each client certificate of the folder that `writePki` made. */
export async function writeKubeconfigs(pki: string, folder: string, url: string): Promise<Kubeconfigs> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const write = async (name: string): Promise<string> => {
    const [certificate, key] = await Promise.all(
      ['crt', 'key'].map((kind) => readFile(join(pki, `${name}.${kind}`), 'utf8')),
    )
    const path = join(folder, `${name}.kubeconfig`)
    await writeKubeconfig(path, {
      url,
      ca: await readFile(join(pki, 'ca.crt'), 'utf8'),
      user: { name, certificate: certificate!, key: key! },
    })
    return path
  }
  return {
    admin: await write('admin'),
    controllerManager: await write('controller-manager'),
    scheduler: await write('scheduler'),
    kubelet: await write('kubelet'),
    proxy: await write('proxy'),
  }
}

/** Signs a client certificate with the CA of a folder that `writePki` made. */
export async function issueClient(
  pki: string,
  commonName: string,
  organizations: readonly string[],
): Promise<KeyPair> {
  const [certificate, key] = await Promise.all(
    ['crt', 'key'].map((kind) => readFile(join(pki, `ca.${kind}`), 'utf8')),
  )
  const ca = new CertificateAuthority({ certificate: certificate!, key: key! }, createPrivateKey(key!))
  return ca.issue({ commonName, organizations, usage: 'client' })
}

export interface KubeconfigContent {
  url: string
  /** PEM */
  ca: string
  /** With a client certificate and its key (PEM), or with a bearer token. */
  user: { name: string } & ({ certificate: string; key: string } | { token: string })
  /** Default: `default` */
  namespace?: string
}

/** Everything is inlined, and the file is its owner's alone. */
export async function writeKubeconfig(path: string, content: KubeconfigContent): Promise<void> {
  const { url, ca, user, namespace } = content
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const credentials =
    'token' in user
      ? { token: user.token }
      : { 'client-certificate-data': base64(user.certificate), 'client-key-data': base64(user.key) }
  const context = { cluster: 'testbed', user: user.name, ...(namespace === undefined ? {} : { namespace }) }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'testbed', cluster: { server: url, 'certificate-authority-data': base64(ca) } }],
    users: [{ name: user.name, user: credentials }],
    contexts: [{ name: 'testbed', context }],
    'current-context': 'testbed',
  }
  await writeFile(path, stringify(config), { mode: 0o600 })
}
