import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { version } from '../src/cli/version.ts'
import { BUNDLES, type Bundle, makeBundle, ROOT } from './build/bundles.ts'
import { commitPackages, packageFaults } from './build/packages.ts'

/** Makes the bundles. `--packages` commits to the npm packages in them, `--out` names another folder than `dist`. */

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: join(ROOT, 'dist') },
    packages: { type: 'boolean', default: false },
  },
})
const bundles: Record<string, Bundle> = {}
for (const spec of BUNDLES) {
  const bundle = await makeBundle(spec, values.out, version())
  bundles[spec.name] = bundle
  const kept = bundle.bytes <= spec.budget
  if (!kept) process.exitCode = 1
  console.log(`${kept ? '✓' : '✗'} ${bundle.file}  ${kilobytes(bundle.bytes)} of ${kilobytes(spec.budget)}`)
}
if (values.packages) commitPackages(bundles)
for (const fault of packageFaults(bundles)) {
  process.exitCode = 1
  console.log(`✗ ${fault}: if that is meant, 'npm run build -- --packages' commits to it`)
}

function kilobytes(bytes: number): string {
  return `${Math.round(bytes / 1000)} kB`
}
