import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { messageOf, PosternError } from '../../../src/core/errors.ts'
import { run } from '../run.ts'
import { type TarEntry, tar } from './tar.ts'

/** A file of an image: its content, or the path of a file on this machine. */
export type ImageFile = string | { content: string | Uint8Array; mode?: number } | { link: string }

export interface ImageOptions {
  /** With a host part and a tag other than latest, or the kubelet would try to pull it: testbed.local/web:1 */
  name: string
  /**
   * By absolute path in the image. A plain string is the path of a file on this machine: it is copied, executable, and
   * so are the libraries that it needs, at their own paths.
   */
  files: Record<string, ImageFile>
  /** Folders that any user may write to, such as /tmp. */
  scratch?: readonly string[]
  entrypoint: readonly string[]
  env?: Record<string, string>
  /** Default 65532:65532. */
  user?: string
}

const architecture = { x64: 'amd64', arm64: 'arm64' }[process.arch as 'x64' | 'arm64'] ?? process.arch

/** Writes an image as a docker archive into a folder and gives its path. No registry and no container tool is needed. */
export async function packImage(image: ImageOptions, folder: string): Promise<string> {
  if (!/^[a-z0-9.-]+\.[a-z0-9.-]+\/[a-z0-9/._-]+:(?!latest$)[\w.-]+$/.test(image.name)) {
    throw new PosternError('BadImage', `${image.name} needs a host part and a tag: testbed.local/NAME:1`)
  }
  const layer = tar(await entriesOf(image))
  const diffId = digest(layer)
  const config = JSON.stringify({
    architecture,
    os: 'linux',
    config: {
      Entrypoint: image.entrypoint,
      User: image.user ?? '65532:65532',
      WorkingDir: '/',
      Env: Object.entries({ PATH: '/bin:/usr/bin:/sbin:/usr/sbin', ...image.env }).map(
        ([k, v]) => `${k}=${v}`,
      ),
    },
    rootfs: { type: 'layers', diff_ids: [`sha256:${diffId}`] },
  })
  const configName = `${digest([Buffer.from(config)])}.json`
  const manifest = [{ Config: configName, RepoTags: [image.name], Layers: [`${diffId}/layer.tar`] }]
  const path = join(folder, `${image.name.replace(/[/:]/g, '_')}.tar`)
  const archive = tar([
    { path: configName, kind: 'file', content: Buffer.from(config) },
    { path: diffId, kind: 'folder' },
    { path: `${diffId}/layer.tar`, kind: 'file', content: Buffer.concat(layer) },
    { path: 'manifest.json', kind: 'file', content: Buffer.from(JSON.stringify(manifest)) },
  ])
  await pipeline(Readable.from(archive), createWriteStream(path))
  return path
}

/** The process that holds a pod's namespaces. It does nothing; the runtime ends it by SIGKILL. */
export const pauseImage: ImageOptions = {
  name: 'testbed.local/pause:1',
  files: { '/bin/busybox': '/bin/busybox' },
  entrypoint: ['/bin/busybox', 'sleep', '2147483647'],
}

/** Cluster DNS. */
export function coreDnsImage(program: string): ImageOptions {
  return { name: 'testbed.local/coredns:1', files: { '/coredns': program }, entrypoint: ['/coredns'] }
}

/**
 * For backends, and for clients in pods: a web server on port 8080 that serves a page (`/www/index.html`), busybox with all
 * its commands, and curl. Runs as any user on a read-only root.
 */
export const webImage: ImageOptions = {
  name: 'testbed.local/web:1',
  files: {
    '/bin/busybox': '/bin/busybox',
    '/usr/bin/curl': '/usr/bin/curl',
    '/www/index.html': { content: 'hello from a pod\n' },
    '/etc/passwd': { content: 'root:x:0:0:root:/:/bin/sh\nnonroot:x:65532:65532:nonroot:/:/bin/sh\n' },
    '/etc/nsswitch.conf': { content: 'passwd: files\nhosts: files dns\n' },
    ...Object.fromEntries(
      [
        'sh',
        'cat',
        'echo',
        'env',
        'head',
        'hostname',
        'httpd',
        'id',
        'ls',
        'nc',
        'nslookup',
        'sleep',
        'wget',
      ].map((command) => [`/bin/${command}`, { link: 'busybox' }]),
    ),
  },
  scratch: ['/tmp'],
  // As the first process it would ignore SIGTERM, which has no default action there.
  entrypoint: ['/bin/sh', '-c', "trap 'exit 0' TERM; httpd -f -p 8080 -h /www & wait"],
}

async function entriesOf(image: ImageOptions): Promise<TarEntry[]> {
  const files = new Map<string, TarEntry>()
  const add = (path: string, entry: TarEntry) => files.set(path.replace(/^\/+/, ''), entry)
  for (const [path, file] of Object.entries(image.files)) {
    const inside = path.replace(/^\/+/, '')
    if (typeof file === 'string') {
      add(path, await copyOf(file, inside))
      for (const library of await librariesOf(file)) {
        add(library, await copyOf(library, library.slice(1)))
      }
    } else if ('link' in file) add(path, { path: inside, kind: 'link', target: file.link })
    else {
      const { content, mode = 0o644 } = file
      add(path, { path: inside, kind: 'file', content: Buffer.from(content), mode })
    }
  }
  const folders = new Map<string, TarEntry>()
  for (const path of files.keys()) {
    for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
      folders.set(path.slice(0, at), { path: path.slice(0, at), kind: 'folder' })
    }
  }
  for (const path of image.scratch ?? []) {
    folders.set(path.slice(1), { path: path.slice(1), kind: 'folder', mode: 0o1777 })
  }
  const byPath = (a: TarEntry, b: TarEntry) => (a.path < b.path ? -1 : 1)
  return [...[...folders.values()].sort(byPath), ...[...files.values()].sort(byPath)]
}

async function copyOf(source: string, path: string): Promise<TarEntry> {
  try {
    return { path, kind: 'file', content: await readFile(source), mode: 0o755 }
  } catch (cause) {
    throw new PosternError('BadImage', `${source} cannot be read: run make setup`, { cause })
  }
}

/** The libraries and the loader that a program names; none for a static one. */
async function librariesOf(program: string): Promise<string[]> {
  // It fails for a static program, and says so.
  const said = await run('ldd', [program]).catch((error) => {
    if (/not a dynamic executable|statically linked/.test(messageOf(error))) return ''
    throw error
  })
  const missing = said.match(/(\S+) => not found/)?.[1]
  if (missing !== undefined)
    throw new PosternError('BadImage', `${program} needs ${missing}, which is missing`)
  return [...said.matchAll(/(?:=> |^\s*)(\/\S+) \(0x/gm)].map((match) => match[1]!)
}

function digest(pieces: readonly Uint8Array[]): string {
  const hash = createHash('sha256')
  for (const piece of pieces) hash.update(piece)
  return hash.digest('hex')
}
