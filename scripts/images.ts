import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { version } from '../src/cli/version.ts'
import { messageOf } from '../src/core/errors.ts'
import { ROOT } from './build/bundles.ts'
import { commit } from './images/commit.ts'
import { makeImages } from './images/make.ts'

/** Builds the images into `dist/images`, or into `--out FOLDER`. */

const { values } = parseArgs({
  options: { out: { type: 'string', default: join(ROOT, 'dist', 'images') } },
})
try {
  const images = await makeImages({ folder: values.out, version: version(), ...(await commit()) })
  for (const { reference, archive, size, digest } of images) {
    console.log(`${reference}  ${(size / 1e6).toFixed(1)} MB compressed\n  ${archive}\n  ${digest}`)
  }
} catch (error) {
  console.error(`images: ${messageOf(error)}`)
  process.exitCode = 1
}
