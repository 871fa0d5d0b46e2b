import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { describe } from 'node:test'
import { buildingMissing } from './go.ts'
import { whyNoNode } from './node/machine.ts'

/** Why suites that need the API server are left out of this run; undefined when they are not. Told at the run's end too. */
export function kubernetesMissing(): string | undefined {
  return note('the API server layer', buildingMissing())
}

/** Why suites that need a node are left out of this run. */
export async function nodeMissing(): Promise<string | undefined> {
  return note('the node layer', buildingMissing() ?? (await whyNoNode()))
}

/** Why suites of another layer are left out of this run. */
export function layerMissing(layer: string, why: string | undefined): string | undefined {
  return note(layer, why)
}

/** A suite that is left out, with the reason, where there can be no API server. */
export function describeWithKubernetes(name: string, suite: () => void | Promise<void>): void {
  const skip = kubernetesMissing()
  describe(name, skip === undefined ? {} : { skip }, suite)
}

/** Names a file to which test files add what they leave out: test/run.ts prints it once. */
const variable = 'POSTERN_TEST_LEFT_OUT'

function note(layer: string, why: string | undefined): string | undefined {
  if (why === undefined) return undefined
  const line = `${why}: ${layer} is left out`
  const file = process.env[variable]
  if (file) appendFileSync(file, `${line}\n`)
  return line
}

/** What the test files of a run have left out, each layer once. */
export function leftOut(file: string): string[] {
  if (!existsSync(file)) return []
  return [
    ...new Set(
      readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== ''),
    ),
  ]
}
