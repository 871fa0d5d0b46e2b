import { Command } from 'commander'
import { example } from '../options.ts'
import { versionText } from '../version.ts'

export function versionCommand(): Command {
  const command = new Command('version')
    .summary('print the version')
    .description('Prints the version of postern, and of the Node and the tor that it uses.')
    .action(async () => console.log(await versionText()))
  return example(command, 'postern version')
}
