import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../build/bundles.ts'
import type { DebianPackage } from './debian.ts'

/** A component as CycloneDX names it. */
export interface Part {
  type: 'library'
  name: string
  version: string
  purl: string
}

export function npmPart(name: string): Part {
  const file = join(ROOT, 'node_modules', name, 'package.json')
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string }
  return { type: 'library', name, version, purl: `pkg:npm/${name.replace('@', '%40')}@${version}` }
}

export function debianPart({ name, version, architecture }: DebianPackage): Part {
  const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}`
  return { type: 'library', name, version, purl }
}

/** A CycloneDX document; the same for the same parts, so without the time and the number that it might have. */
export function bill(name: string, version: string, parts: readonly Part[]): string {
  const components = [...new Map(parts.map((part) => [part.purl, part])).values()].sort((a, b) =>
    a.purl < b.purl ? -1 : 1,
  )
  const metadata = { component: { type: 'container', name, version } }
  return `${JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.6', version: 1, metadata, components }, null, 1)}\n`
}
