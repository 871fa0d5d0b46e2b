import { Command, InvalidArgumentError } from 'commander'
import { POD } from '../../cluster/kinds.ts'
import { parseTarget } from '../kinds.ts'
import { existing, withStore } from '../objects.ts'
import { example, namespaceOption, stateOption } from '../options.ts'
import { printLog } from '../pod-log.ts'
import { stateFolder } from '../state.ts'

export function logsCommand(): Command {
  const command = new Command('logs')
    .summary("print a pod's output")
    .description("Prints what the containers of a pod wrote. 'postern get pods' lists the pods.")
    .argument('<pod>')
    .option('-f, --follow', 'go on with what comes')
    .option('--tail <lines>', 'only the last lines', wholeNumber)
    .action(logs)
  return example(stateOption(namespaceOption(command)), 'postern logs tor-0 --tail 20 -f')
}

async function logs(
  word: string,
  options: { namespace: string; follow?: true; tail?: number; state?: string },
): Promise<void> {
  const name = word.includes('/') ? (parseTarget(word, undefined).name ?? '') : word
  const state = stateFolder(options.state)
  await withStore(state, (store) => existing(store, POD, options.namespace, name))
  await printLog({
    state,
    namespace: options.namespace,
    pod: name,
    follow: options.follow === true,
    tail: options.tail,
  })
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}
