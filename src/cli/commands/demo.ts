import { Command } from 'commander'
import type { DemoCommandOptions } from '../demo/command.ts'
import { example, outputOption } from '../options.ts'

export function demoCommand(): Command {
  const command = new Command('demo')
    .summary('see it work: a private Tor network, an onion, a page')
    .description(
      'Starts a private Tor network on loopback, publishes examples/onion-site on it and fetches the page through its onion. No internet is needed. Runs until Ctrl-C.',
    )
    .option('--once', 'end after the first page: 0 if it came, 1 otherwise')
    .addOption(
      outputOption(['text', 'json'], 'with --once: one JSON document instead of text').default('text'),
    )
    .option('--state <dir>', 'state folder, wiped at the start (default: .postern/demo beside the sources)')
    .action(demo)
  return example(command, 'postern demo', 'postern demo --once --output json')
}

async function demo(options: DemoCommandOptions): Promise<void> {
  const { runDemoCommand } = await import('../demo/command.ts')
  await runDemoCommand(options)
}
