import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commit } from '../scripts/images/commit.ts'
import { makeImages } from '../scripts/images/make.ts'
import { version } from '../src/cli/version.ts'
import { codeOf, messageOf } from '../src/core/errors.ts'
import type { Report } from './figure.ts'

const BAR = 60

/** Compressed sizes of the images: what a node pulls. */
export async function images(report: Report): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-images-'))
  try {
    const [operator, tor] = await makeImages({ folder, version: version(), ...(await commit()) })
    const value = operator!.size / 1e6
    report({
      figure: 'image of the operator, compressed',
      value,
      unit: 'MB',
      bar: `<= ${BAR} MB`,
      ok: value <= BAR,
    })
    report({ figure: 'image of tor and its agent, compressed', value: tor!.size / 1e6, unit: 'MB' })
    const shared = operator!.layers[0]!
    report({
      figure: 'layer that both have, compressed',
      value: shared.size / 1e6,
      unit: 'MB',
      bar: 'the same',
      ok: tor!.layers[0]!.digest === shared.digest,
    })
  } catch (error) {
    if (codeOf(error) !== 'ProgramMissing') throw error
    report({ figure: `images: left out, ${messageOf(error)}`, value: Number.NaN, unit: '' })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
