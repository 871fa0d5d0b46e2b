import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import type { Resource } from '../../src/core/resource.ts'
import { kubectl } from '../../testbed/kubernetes/kubectl.ts'
import type { NodeClusterAccess } from '../../testbed/kubernetes/lazy-cluster.ts'
import { packImage, webImage } from '../../testbed/kubernetes/node/images.ts'
import { importImage } from '../../testbed/kubernetes/node/node.ts'
import { startTorNetwork, type TorNetwork } from '../../testbed/tor-network/network.ts'
import { images } from './images.ts'

/** What the tests and benchmarks on a node share: a cluster with our images, and a Tor network that its pods reach. */

const ROOT = join(import.meta.dirname, '..', '..')
export const OPERATOR_NAMESPACE = 'postern-system'

export interface Stage extends AsyncDisposable {
  access: NodeClusterAccess
  tor: TorNetwork
  /** Runs kubectl and gives its stdout. */
  kubectl(args: string[], input?: string): Promise<string>
  /** `kubectl apply` of objects. */
  apply(...objects: object[]): Promise<void>
  get(kind: string, name: string, namespace?: string): Promise<Resource>
  list(kind: string, ...args: string[]): Promise<Resource[]>
  /** Of the stage, and gone with it. */
  folder: string
  /** The objects of `deploy/` with the images of this build, for kubectl's `-k`. */
  deployFolder: string
  /** Image references of this build, as pods name them. */
  images: { operator: string; tor: string }
}

/** Imports the images and starts the Tor network, at once; `access` is of a cluster that runs. */
export async function openStage(access: NodeClusterAccess): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'pns-'))
  const [tor, references] = await Promise.all([
    startTorNetwork({ state: join(folder, 'tor'), address: access.network.hostAddress }),
    importImages(access, folder),
  ])
  const run = (args: string[], input?: string): Promise<string> =>
    kubectl(args, { ...access, ...(input === undefined ? {} : { input }) })
  const deployFolder = join(folder, 'deploy')
  await writeOverlay(deployFolder, references)
  return {
    access,
    tor,
    images: references,
    folder,
    deployFolder,
    kubectl: run,
    async apply(...items) {
      const list = { apiVersion: 'v1', kind: 'List', items }
      await run(['apply', '--server-side', '--force-conflicts', '-f', '-'], JSON.stringify(list))
    },
    async get(kind, name, namespace) {
      const where = namespace === undefined ? [] : ['-n', namespace]
      return JSON.parse(await run(['get', kind, name, ...where, '-o', 'json'])) as Resource
    },
    async list(kind, ...args) {
      const found = JSON.parse(await run(['get', kind, ...args, '-o', 'json'])) as { items: Resource[] }
      return found.items
    },
    async [Symbol.asyncDispose]() {
      await tor.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function importImages(access: NodeClusterAccess, folder: string): Promise<Stage['images']> {
  const built = await images(join(folder, 'images'))
  for (const archive of [built.operator.archive, built.tor.archive, await packImage(webImage, folder)]) {
    await importImage(access.node, archive)
  }
  return { operator: built.operator.reference, tor: built.tor.reference }
}

/** As a user would put images of a registry of theirs in: an overlay of deploy/. */
async function writeOverlay(folder: string, { operator, tor }: Stage['images']): Promise<void> {
  const image = (name: string, reference: string): string[] => {
    const colon = reference.lastIndexOf(':')
    return [
      `  - name: ${name}`,
      `    newName: ${reference.slice(0, colon)}`,
      `    newTag: ${reference.slice(colon + 1)}`,
    ]
  }
  await mkdir(folder, { recursive: true })
  const base = relative(folder, join(ROOT, 'deploy'))
  const lines = [
    'apiVersion: kustomize.config.k8s.io/v1beta1',
    'kind: Kustomization',
    `resources: [${base}]`,
    `configurations: [images.yaml]`,
    'images:',
    ...image('postern', operator),
    ...image('postern-tor', tor),
  ]
  await writeFile(join(folder, 'kustomization.yaml'), `${lines.join('\n')}\n`)
  await writeFile(
    join(folder, 'images.yaml'),
    'images:\n  - path: spec/template/spec/containers/env/value\n    kind: Deployment\n',
  )
}
