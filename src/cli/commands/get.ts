import { Command } from 'commander'
import { EVENT } from '../../cluster/kinds.ts'
import { inTime } from '../events.ts'
import { parseTarget } from '../kinds.ts'
import { existing, listed, withStore } from '../objects.ts'
import { example, namespaceOption, outputOption, stateOption } from '../options.ts'
import { document, type Format, hideSecret } from '../output.ts'
import { stateFolder } from '../state.ts'
import { styleFor } from '../style.ts'
import { byName, objectTable } from '../table.ts'

interface Options {
  namespace: string
  allNamespaces?: true
  output?: Format
  showSecrets?: true
  state?: string
}

export function getCommand(): Command {
  const command = new Command('get')
    .summary('list objects, or show one')
    .description('Lists the objects of a kind, or shows one of them.')
    .argument('<kind>', 'plural, singular or short name, e.g. onionservices, onion, svc; or kind/name')
    .argument('[name]')
    .option('-A, --all-namespaces', 'of all namespaces')
    .addOption(outputOption(['wide', 'yaml', 'json'], 'more columns, or whole objects'))
    .option('--show-secrets', 'with -o yaml or json: what Secrets hold')
    .action(get)
  return example(
    stateOption(namespaceOption(command)),
    'postern get onionservices',
    'postern get onion web -o yaml',
  )
}

async function get(word: string, given: string | undefined, options: Options): Promise<void> {
  const { kind, name } = parseTarget(word, given)
  const namespace = options.allNamespaces === true && name === undefined ? undefined : options.namespace
  const objects = await withStore(stateFolder(options.state), (store) =>
    name === undefined ? listed(store, kind, namespace) : [existing(store, kind, options.namespace, name)],
  )
  if (options.output === 'yaml' || options.output === 'json') {
    const shown = options.showSecrets === true ? objects : objects.map(hideSecret)
    console.log(document(shown, name !== undefined, options.output))
  } else if (objects.length === 0) {
    const where = kind.namespaced && namespace !== undefined ? ` in namespace ${namespace}` : ''
    console.error(`No ${kind.plural}${where}.`)
  } else {
    const wide = options.output === 'wide'
    const style = styleFor(process.stdout)
    const sorted = kind === EVENT ? inTime(objects) : objects.toSorted(byName)
    console.log(
      objectTable(kind, sorted, {
        now: Date.now(),
        wide,
        withNamespace: namespace === undefined && name === undefined,
        style,
      }),
    )
  }
}
