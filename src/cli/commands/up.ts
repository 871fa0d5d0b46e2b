import { Command, Option } from 'commander'
import type { LevelWithSilent } from 'pino'
import { LOG_LEVELS } from '../log-levels.ts'
import { example, stateOption } from '../options.ts'

export function upCommand(): Command {
  const command = new Command('up')
    .summary('run the manifests of a folder on this machine')
    .description(
      'Keeps this machine as the manifests of a folder say, until Ctrl-C. A changed, added or removed manifest takes effect at once.',
    )
    .argument('<folder>', 'folder with the manifests')
    .addOption(
      new Option('--log-level <level>', 'what is logged to stderr').choices(LOG_LEVELS).default('warn'),
    )
    .action(up)
  return example(stateOption(command), 'postern up examples/onion-site')
}

async function up(folder: string, options: { state?: string; logLevel: LevelWithSilent }): Promise<void> {
  // Loaded when it is needed: `get` and its like start in half the time without it.
  const { runUp } = await import('../up.ts')
  await runUp(folder, options)
}
