import { type Command, Option } from 'commander'
import { DEFAULT_NAMESPACE } from './objects.ts'

/** Options that several subcommands share. */

export function stateOption(command: Command, text = 'state folder'): Command {
  return command.option('--state <dir>', `${text} (default: $POSTERN_STATE, else ~/.local/state/postern)`)
}

export function namespaceOption(command: Command): Command {
  return command.option('-n, --namespace <name>', 'namespace', DEFAULT_NAMESPACE)
}

export function outputOption(choices: string[], text: string): Option {
  return new Option('-o, --output <format>', text).choices(choices)
}

export function example(command: Command, ...lines: string[]): Command {
  const title = lines.length === 1 ? 'Example:' : 'Examples:'
  return command.addHelpText('after', `\n${title}\n${lines.map((line) => `  $ ${line}`).join('\n')}`)
}
