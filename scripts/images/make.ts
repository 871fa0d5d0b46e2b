import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { requireProgram } from '../../src/cli/programs.ts'
import { BUNDLES, type Bundle, makeBundle } from '../build/bundles.ts'
import { type Archived, archive } from './archive.ts'
import { Buildah } from './buildah.ts'
import { baseContents, billContents, bundleContents, torContents } from './contents.ts'
import { librariesOf } from './debian.ts'
import { Rootfs } from './rootfs.ts'

export interface ImagesOptions {
  /** The archives are put here. */
  folder: string
  version: string
  /** Commit that it is built from, if that is known. */
  revision?: string
  /** Seconds since the epoch: of the commit. */
  timestamp: number
}

export interface Image extends Archived {
  name: 'postern' | 'postern-tor'
  /** `localhost/postern:0.1.0`: what it is called where the archive is imported. */
  reference: string
  /** OCI archive, for `ctr images import` and `skopeo copy oci-archive:…`. */
  archive: string
  /** Bytes of all layers, compressed. */
  size: number
}

const PATH = '/usr/bin'
/**
 * One arena: several threads hardly ever ask for memory at once, and each arena keeps some for itself. And a fixed
 * threshold: without one, a large answer that was freed raises it, and the next ones are cut from the heap for good.
 */
const COMMON = { PATH, LANG: 'C.UTF-8', MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '65536' }

/** V8 grows lazily up to its limits, so the limits decide what a process takes. A pod's env overrides them. */
const IMAGES = [
  {
    name: 'postern',
    bundle: 'postern',
    program: 'postern',
    title: 'Postern',
    description: 'Private doors for Kubernetes: the operator',
    options: '--max-semi-space-size=1 --max-old-space-size=192',
  },
  {
    name: 'postern-tor',
    bundle: 'tor-agent',
    program: 'postern-tor-agent',
    title: 'Postern tor',
    description: 'Private doors for Kubernetes: tor and its agent',
    options: '--max-semi-space-size=2 --max-old-space-size=64',
  },
] as const

/**
 * Builds both images from what is installed on this machine: Node from npm, tor and libraries from Debian packages. The
 * same inputs give the same bytes. The layer below both holds Node and does not change with our version.
 *
 * @throws PosternError `ProgramMissing`, `ImageNode`, `ImageCertificates`, `ImageProgram`
 */
export async function makeImages(options: ImagesOptions): Promise<Image[]> {
  requireProgram('strip', 'binutils')
  await mkdir(options.folder, { recursive: true })
  const work = await mkdtemp(join(tmpdir(), 'postern-images-'))
  try {
    const buildah = await Buildah.open(join(work, 'buildah'))
    const bundles: Record<string, Bundle> = {}
    for (const spec of BUNDLES)
      bundles[spec.name] = await makeBundle(spec, join(work, 'bundles'), options.version)
    const base = new Rootfs(join(work, 'base'))
    const common = await baseContents(base)
    const inBase = await librariesOf(join(base.folder, 'usr', 'bin', 'node'))
    const from = await buildah.build({ folder: base.folder, timestamp: 0 })
    const images: Image[] = []
    for (const image of IMAGES) {
      const { name, program } = image
      const rootfs = new Rootfs(join(work, name))
      const parts = [...common, ...(await bundleContents(rootfs, bundles[image.bundle]!, program))]
      if (name === 'postern-tor') parts.push(...(await torContents(rootfs, inBase)))
      await billContents(rootfs, name, options.version, parts)
      const id = await buildah.build({
        from,
        folder: rootfs.folder,
        timestamp: options.timestamp,
        user: '65532:65532',
        entrypoint: [`${PATH}/${program}`],
        env: environmentOf(name),
        labels: labels(image, options),
      })
      const layout = join(work, `${name}-oci`)
      await buildah.export(id, layout)
      const file = join(options.folder, `${name}.tar`)
      const reference = `localhost/${name}:${options.version}`
      const archived = await archive(layout, reference, file)
      const size = archived.layers.reduce((sum, layer) => sum + layer.size, 0)
      images.push({ name, reference, archive: file, size, ...archived })
    }
    return images
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** What a program of an image finds in its environment. */
export function environmentOf(name: Image['name']): Record<string, string> {
  return { ...COMMON, NODE_OPTIONS: IMAGES.find((image) => image.name === name)!.options }
}

function labels(
  { title, description }: { title: string; description: string },
  { version, revision, timestamp }: ImagesOptions,
): Record<string, string> {
  const all = {
    title,
    description,
    version,
    created: new Date(timestamp * 1000).toISOString().replace('.000', ''),
    licenses: 'Apache-2.0',
    ...(revision === undefined ? {} : { revision }),
  }
  return Object.fromEntries(
    Object.entries(all).map(([name, value]) => [`org.opencontainers.image.${name}`, value]),
  )
}
