import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from './run.ts'

export interface Layer {
  digest: string
  /** Bytes, compressed. */
  size: number
}

export interface Archived {
  /** Of the manifest, as a registry would name it: sha256:… */
  digest: string
  layers: Layer[]
}

interface Index {
  manifests: { digest: string; annotations?: Record<string, string> }[]
}

/**
 * Packs an OCI layout into one file, the same for the same image.
 *
 * @param reference what `ctr images import` and `skopeo` find it by
 */
export async function archive(layout: string, reference: string, file: string): Promise<Archived> {
  const path = join(layout, 'index.json')
  const index = JSON.parse(await readFile(path, 'utf8')) as Index
  const [manifest] = index.manifests
  if (manifest === undefined) throw new Error(`${path} names no image`)
  manifest.annotations = {
    'io.containerd.image.name': reference,
    'org.opencontainers.image.ref.name': reference,
  }
  await writeFile(path, JSON.stringify(index))
  const same = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--mode=a=rX,u+w']
  await run('tar', ['--create', '--format=ustar', ...same, '--file', file, '--directory', layout, '.'])
  const blob = await readFile(join(layout, 'blobs', ...manifest.digest.split(':')), 'utf8')
  return { digest: manifest.digest, layers: (JSON.parse(blob) as { layers: Layer[] }).layers }
}
