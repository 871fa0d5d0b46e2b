import { Command } from 'commander'
import { SOURCE_ANNOTATION } from '../../cluster/cluster.ts'
import { refOf } from '../../core/resource.ts'
import { UsageError } from '../errors.ts'
import { parseTarget } from '../kinds.ts'
import { existing, withStore } from '../objects.ts'
import { example, namespaceOption, stateOption } from '../options.ts'
import { stateFolder } from '../state.ts'

export function deleteCommand(): Command {
  const command = new Command('delete')
    .summary('delete an object')
    .description(
      'Deletes an object. One that stands in a manifest comes back when the manifests are read again.',
    )
    .argument('<kind>', 'plural, singular or short name; or kind/name')
    .argument('[name]')
    .action(remove)
  return example(stateOption(namespaceOption(command)), 'postern delete onionservice web')
}

async function remove(
  word: string,
  given: string | undefined,
  options: { namespace: string; state?: string },
): Promise<void> {
  const { kind, name } = parseTarget(word, given)
  if (name === undefined)
    throw new UsageError(`name the ${kind.kind} to delete; 'postern get ${kind.plural}' lists them`)
  const object = await withStore(stateFolder(options.state), (store) => {
    const found = existing(store, kind, options.namespace, name)
    store.remove(refOf(found), found.metadata.uid === undefined ? {} : { uid: found.metadata.uid })
    return found
  })
  console.log(`${kind.kind.toLowerCase()}/${name} deleted`)
  const manifest = object.metadata.annotations?.[SOURCE_ANNOTATION]
  if (manifest !== undefined)
    console.error(`It stands in ${manifest}: remove it there too, or it comes back.`)
}
