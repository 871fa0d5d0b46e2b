import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { TOR_KINDS } from '../../src/tor/api/kinds.ts'
import { runbookIndex } from './alerts.ts'
import { chartFiles } from './chart.ts'
import { commandReference } from './commands.ts'
import { deployFiles } from './kustomize.ts'
import { metricsReference } from './metrics.ts'
import { reference } from './reference.ts'
import { documentSchema } from './schemas.ts'
import { troubleshooting } from './troubleshooting.ts'

const ROOT = join(import.meta.dirname, '..', '..')
/** Folders in which every file with one of these ends is generated: what is not made any more goes. */
const WHOLE: Readonly<Record<string, string>> = {
  'docs/schemas': '.json',
  'deploy/base/crds': '.yaml',
  'charts/postern/templates': '.yaml',
}

/** Every generated file of the repository, by its path. */
export function generatedFiles(): Map<string, string> {
  const { version, description } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    version: string
    description: string
  }
  return new Map([
    ['docs/reference.md', reference()],
    ['docs/troubleshooting.md', troubleshooting()],
    ['docs/commands.md', commandReference()],
    ['docs/metrics.md', metricsReference()],
    ['docs/runbooks/README.md', runbookIndex()],
    ...TOR_KINDS.map((kind): [string, string] => [
      `docs/schemas/${kind.kind.toLowerCase()}.json`,
      `${JSON.stringify(documentSchema(kind), null, 2)}\n`,
    ]),
    ...deployFiles(version),
    ...chartFiles(version, description),
  ])
}

/**
 * Writes what follows from the sources.
 *
 * @param check only compare with what is there
 * @returns what differs, one line each
 */
export function generate(check: boolean): string[] {
  const files = generatedFiles()
  const faults: string[] = []
  for (const [path, text] of files) {
    if (read(path) === text) continue
    faults.push(`${path} is not what the sources give: run 'npm run generate'`)
    if (check) continue
    mkdirSync(dirname(join(ROOT, path)), { recursive: true })
    writeFileSync(join(ROOT, path), text)
  }
  for (const [folder, end] of Object.entries(WHOLE)) {
    for (const name of list(folder)) {
      const path = `${folder}/${name}`
      if (!name.endsWith(end) || files.has(path)) continue
      faults.push(`${path} is not made any more: run 'npm run generate'`)
      if (!check) rmSync(join(ROOT, path))
    }
  }
  return faults
}

function list(folder: string): string[] {
  try {
    return readdirSync(join(ROOT, folder))
  } catch {
    return []
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(join(ROOT, path), 'utf8')
  } catch {
    return undefined
  }
}
