import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Bundle, ROOT } from './bundles.ts'

const FILE = join(ROOT, 'scripts', 'build', 'packages.json')

/** The npm packages that each bundle may hold, as they are committed: a new one is seen in a review. */
export function committedPackages(): Record<string, string[]> {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, string[]>
}

export function commitPackages(bundles: Record<string, Bundle>): void {
  const names = Object.entries(bundles).map(([name, { packages }]) => [name, packages])
  writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(names), null, 2)}\n`)
}

/** What differs from what is committed, a line each, for a person. */
export function packageFaults(bundles: Record<string, Bundle>): string[] {
  const committed = committedPackages()
  return Object.entries(bundles).flatMap(([name, { packages }]) => {
    const before = committed[name] ?? []
    const added = packages.filter((one) => !before.includes(one)).map((one) => `${name} also holds ${one}`)
    const gone = before
      .filter((one) => !packages.includes(one))
      .map((one) => `${name} holds no ${one} any more`)
    return [...added, ...gone]
  })
}
