import { Command } from 'commander'
import { describeObject } from '../describe.ts'
import { UsageError } from '../errors.ts'
import { parseTarget } from '../kinds.ts'
import { eventsIn, existing, withStore } from '../objects.ts'
import { example, namespaceOption, stateOption } from '../options.ts'
import { stateFolder } from '../state.ts'
import { styleFor } from '../style.ts'

export function describeCommand(): Command {
  const command = new Command('describe')
    .summary('show how an object stands, and what to do next')
    .description(
      'Shows an object with its conditions, the next step where something is wrong, and its events.',
    )
    .argument('<kind>', 'plural, singular or short name; or kind/name')
    .argument('[name]')
    .action(describe)
  return example(stateOption(namespaceOption(command)), 'postern describe onionservice web')
}

async function describe(
  word: string,
  given: string | undefined,
  options: { namespace: string; state?: string },
): Promise<void> {
  const { kind, name } = parseTarget(word, given)
  if (name === undefined)
    throw new UsageError(`name the ${kind.kind} to describe; 'postern get ${kind.plural}' lists them`)
  const { object, events } = await withStore(stateFolder(options.state), (store) => {
    const object = existing(store, kind, options.namespace, name)
    return { object, events: eventsIn(store, object) }
  })
  const width = process.stdout.columns ?? 100
  console.log(describeObject(object, events, { now: Date.now(), style: styleFor(process.stdout), width }))
}
