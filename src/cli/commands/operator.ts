import { Command } from 'commander'
import type { RawSettings } from '../operator/flags.ts'
import { operatorOptions } from '../operator/flags.ts'
import { example } from '../options.ts'

const NOTES = `
Flags win over environment variables. Every wrong setting is said at the start.

Exit codes:
  0  ended in order, after SIGTERM or SIGINT
  1  something did not work; the last line of the log says what
  2  a setting, or the kubeconfig, is wrong
  6  the Lease was lost: another replica works, and this one starts anew
  130, 143  ended at once, by a second SIGINT or SIGTERM`

export function operatorCommand(): Command {
  const command = new Command('operator')
    .summary('control a Kubernetes cluster')
    .description('Runs the controllers against an API server, until SIGTERM. Logs JSON lines to stderr.')
    .action(operator)
  for (const option of operatorOptions()) command.addOption(option)
  return example(
    command.addHelpText('after', NOTES),
    'postern operator --tor-image registry.example/postern-tor:0.1.0',
    'postern operator --context test --no-leader-elect --namespaces web,shop',
  )
}

async function operator(raw: RawSettings): Promise<void> {
  // Loaded when it is needed: `get` and its like start in half the time without it.
  const { runOperator } = await import('../operator/run.ts')
  await runOperator(raw)
}
