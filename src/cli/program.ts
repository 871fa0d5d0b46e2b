import { Command } from 'commander'
import { deleteCommand } from './commands/delete.ts'
import { demoCommand } from './commands/demo.ts'
import { describeCommand } from './commands/describe.ts'
import { getCommand } from './commands/get.ts'
import { keysCommand } from './commands/keys.ts'
import { logsCommand } from './commands/logs.ts'
import { operatorCommand } from './commands/operator.ts'
import { upCommand } from './commands/up.ts'
import { versionCommand } from './commands/version.ts'
import { version } from './version.ts'

/** The command line, whole. Mistakes on it are thrown, never an exit. */
export function program(): Command {
  const commands = [
    upCommand(),
    demoCommand(),
    getCommand(),
    describeCommand(),
    deleteCommand(),
    logsCommand(),
    keysCommand(),
    operatorCommand(),
    versionCommand(),
  ]
  const root = new Command('postern')
    .description('Private doors: publish services as onions, and reach foreign ones.')
    .version(version(), '-V, --version', 'print the version')
    .showHelpAfterError(false)
    .showSuggestionAfterError(true)
    .addHelpText('after', '\nStart here:\n  $ postern demo\n  $ postern up examples/onion-site')
  for (const command of commands) root.addCommand(command)
  for (const command of [root, ...commands.flatMap((one) => [one, ...one.commands])]) {
    command.exitOverride().configureOutput({ outputError: () => {} })
  }
  return root
}
