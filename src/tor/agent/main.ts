import { parseArgs } from 'node:util'
import { pino } from 'pino'
import { codeOf, messageOf, PosternError } from '../../core/errors.ts'
import { TorAgent, type TorAgentOptions } from './agent.ts'

const USAGE =
  'usage: tor-agent --topology FOLDER --keys FOLDER --data FOLDER --run FOLDER --address IP [--tor PROGRAM] [--linger SECONDS] [--keep FOLDER]'
/** Within the thirty seconds that a pod has. */
const GRACE_MS = 5_000
const LINGER_MOST = 86_400

/** @throws PosternError UsageError */
export function readArguments(args: readonly string[]): Omit<TorAgentOptions, 'log'> {
  const text = { type: 'string' } as const
  let values: Partial<
    Record<'topology' | 'keys' | 'data' | 'run' | 'address' | 'tor' | 'linger' | 'keep', string>
  >
  try {
    const options = {
      topology: text,
      keys: text,
      data: text,
      run: text,
      address: text,
      tor: text,
      linger: text,
      keep: text,
    }
    values = parseArgs({ args: [...args], options, strict: true }).values
  } catch (error) {
    throw new PosternError('UsageError', `${messageOf(error)}\n${USAGE}`)
  }
  const { topology, keys, data, run, address, tor, linger, keep } = values
  if (
    topology === undefined ||
    keys === undefined ||
    data === undefined ||
    run === undefined ||
    address === undefined
  ) {
    throw new PosternError('UsageError', USAGE)
  }
  return {
    topology,
    keys,
    data,
    run,
    address,
    lingerMs: milliseconds(linger ?? '0'),
    ...(tor === undefined ? {} : { tor }),
    ...(keep === undefined ? {} : { keep }),
  }
}

function milliseconds(seconds: string): number {
  if (!/^\d{1,5}$/.test(seconds) || Number(seconds) > LINGER_MOST) {
    throw new PosternError(
      'UsageError',
      `--linger takes whole seconds from 0 to ${LINGER_MOST}, not ${seconds.slice(0, 40)}\n${USAGE}`,
    )
  }
  return Number(seconds) * 1000
}

/**
 * Runs an agent until SIGTERM or SIGINT; a second one ends it at once. After SIGTERM it lingers at most as long as it
 * was told, and ten seconds more for streams that run; a terminal's SIGINT does not wait for a successor.
 */
export async function main(args: readonly string[]): Promise<void> {
  const log = pino({ level: process.env.LOG_LEVEL ?? 'info', base: null })
  let agent: TorAgent
  try {
    agent = await TorAgent.start({ ...readArguments(args), log })
  } catch (error) {
    log.fatal({ code: codeOf(error) }, messageOf(error))
    process.exitCode = codeOf(error) === 'UsageError' ? 2 : 1
    // What was started before the failure must not keep the process.
    setImmediate(() => process.exit())
    return
  }
  log.info({ pid: process.pid, ports: agent.ports }, 'agent runs')
  let stopping = false
  const stop = (signal: string): void => {
    if (stopping) process.exit(1)
    stopping = true
    log.info({ signal }, 'agent stops')
    const ended = signal === 'SIGTERM' ? agent.leave(GRACE_MS) : agent.close(GRACE_MS)
    ended.then(
      () => process.exit(0),
      (error) => {
        log.error({ error: messageOf(error) }, 'agent did not stop cleanly')
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

if (import.meta.main) await main(process.argv.slice(2))
