import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { requireProgram } from '../../src/cli/programs.ts'
import { PosternError } from '../../src/core/errors.ts'
import { type Bundle, ROOT } from '../build/bundles.ts'
import { librariesOf, packagesOf } from './debian.ts'
import type { Rootfs } from './rootfs.ts'
import { bill, debianPart, npmPart, type Part } from './sbom.ts'

const LICENSE = /^(licen[cs]e|copying|notice)/i
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'
/** Whoever has no line here is no less served: no file belongs to a user. */
const PASSWD = `root:x:0:0:root:/:/sbin/nologin
postern:x:65532:65532:postern:/:/sbin/nologin
`
const GROUP = 'root:x:0:\npostern:x:65532:\n'
/** Without a shell, a package manager, or anything else that only an intruder would use. */
const HOSTS_FIRST = 'hosts: files dns\n'

/** What all images have in common: Node and its libraries, certificates, names of users. The same for every version. */
export async function baseContents(rootfs: Rootfs): Promise<Part[]> {
  const package_ = `node-linux-${process.arch}`
  const node = join(ROOT, 'node_modules', package_)
  if (!existsSync(join(node, 'bin', 'node'))) {
    throw new PosternError('ImageNode', `${package_} is not installed: run 'make setup'`)
  }
  if (!existsSync(CERTIFICATES)) {
    throw new PosternError(
      'ImageCertificates',
      `no ${CERTIFICATES}: run 'sudo apt-get install ca-certificates'`,
    )
  }
  await rootfs.program(join(node, 'bin', 'node'), '/usr/bin/node')
  await rootfs.copyMatching(node, LICENSE, `/usr/share/doc/${package_}`)
  const libraries = await librariesOf(join(node, 'bin', 'node'))
  for (const library of libraries) await rootfs.copy(library, library, 0o755)
  await rootfs.copy(CERTIFICATES)
  await rootfs.write('/etc/passwd', PASSWD)
  await rootfs.write('/etc/group', GROUP)
  await rootfs.write('/etc/nsswitch.conf', HOSTS_FIRST)
  await rootfs.scratch('/tmp')
  return [npmPart(package_), ...(await debianParts(rootfs, [...libraries, CERTIFICATES]))]
}

/** A bundle as a program on the PATH. */
export async function bundleContents(rootfs: Rootfs, bundle: Bundle, program: string): Promise<Part[]> {
  const file = `/usr/lib/postern/${program}.mjs`
  await rootfs.copy(bundle.file, file, 0o755)
  await rootfs.link(`/usr/bin/${program}`, `../lib/postern/${program}.mjs`)
  for (const name of bundle.packages) {
    await rootfs.copyMatching(join(ROOT, 'node_modules', name), LICENSE, `/usr/share/doc/${name}`)
  }
  return bundle.packages.map(npmPart)
}

/** tor and the bridges' transport, as Debian ships them, and the folders that an agent writes to. */
export async function torContents(rootfs: Rootfs, inBase: readonly string[]): Promise<Part[]> {
  const files: string[] = []
  for (const [name, aptPackage] of [
    ['tor', 'tor'],
    ['obfs4proxy', 'obfs4proxy'],
  ] as const) {
    const program = requireProgram(name, aptPackage)
    // As it was signed: without symbols it is already.
    await rootfs.copy(program, `/usr/bin/${name}`, 0o755)
    files.push(program)
    for (const library of await librariesOf(program)) {
      if (inBase.includes(library) || files.includes(library)) continue
      await rootfs.copy(library, library, 0o755)
      files.push(library)
    }
  }
  for (const folder of ['/var/lib/postern', '/run/postern']) await rootfs.scratch(folder)
  return debianParts(rootfs, files)
}

async function debianParts(rootfs: Rootfs, files: readonly string[]): Promise<Part[]> {
  const packages = await packagesOf(files)
  for (const { name } of packages) {
    await rootfs.copyMatching(`/usr/share/doc/${name}`, /^copyright$/, `/usr/share/doc/${name}`)
  }
  return packages.map(debianPart)
}

/** What is in an image, for scanners: CycloneDX. */
export async function billContents(
  rootfs: Rootfs,
  name: string,
  version: string,
  parts: Part[],
): Promise<void> {
  await rootfs.write(`/usr/share/postern/${name}.cdx.json`, bill(name, version, parts))
}
