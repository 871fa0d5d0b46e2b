import { parseArgs } from 'node:util'
import { codeOf, messageOf, PosternError } from '../../src/core/errors.ts'
import { startTorNetwork } from './network.ts'

const help = `Starts a private Tor network on this machine: 3 directory authorities, 4 relays and a client.
Runs until SIGTERM or SIGINT, then ends everything.

Usage: npm run -s tor-network -- --state DIR [--address IP] [--json] [--tor PATH]

  --state DIR   a folder for keys and logs, with a short path; an earlier network's files in it are replaced
  --json        print one line {"options": {…}, "socksPort": N} when a client can build circuits:
                options go as they are into TorDaemon.spec.options, socksPort is a visitor's
  --address IP  where it listens (default: 127.0.0.1); daemons elsewhere need one that they reach
  --tor PATH    the tor program (default: tor)
  --help        this text
`

interface Arguments {
  state: string
  json: boolean
  tor: string
  address: string
}

function readArguments(args: string[]): Arguments | 'help' {
  const { values } = parseArgs({
    args,
    options: {
      state: { type: 'string' },
      json: { type: 'boolean', default: false },
      tor: { type: 'string', default: 'tor' },
      address: { type: 'string', default: '127.0.0.1' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return 'help'
  if (values.state === undefined || values.state === '') {
    throw new PosternError('BadArguments', '--state DIR is missing: name a folder for keys and logs')
  }
  return { state: values.state, json: values.json, tor: values.tor, address: values.address }
}

async function run({ state, json, tor, address }: Arguments): Promise<void> {
  const ended = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => ended.abort(name))
  const say = (text: string) => (json ? undefined : console.log(text))
  try {
    await using network = await startTorNetwork({
      state,
      address,
      torBinary: tor,
      signal: ended.signal,
      onStep: (step, detail) => say(`${step.padEnd(10)}${detail ?? ''}`),
    })
    const { options, socksPort, client } = network
    if (json) console.log(JSON.stringify({ options, socksPort }))
    say(`\nA SOCKS port of a client: 127.0.0.1:${socksPort}, its control port: ${client.controlPath}`)
    say('For the torrc of a client or an onion service of this network:\n')
    for (const [key, value] of Object.entries(options)) {
      for (const line of value.split('\n')) say(`  ${key} ${line}`)
    }
    say('\nEnd it with Ctrl-C.')
    await untilAborted(ended.signal)
  } catch (error) {
    // Asked to end while it was still starting.
    if (!ended.signal.aborted) throw error
  }
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  // A signal handler alone does not keep a process alive.
  const alive = setInterval(() => {}, 2 ** 30)
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  clearInterval(alive)
}

try {
  const args = readArguments(process.argv.slice(2))
  if (args === 'help') process.stdout.write(help)
  else await run(args)
} catch (error) {
  const code = codeOf(error) ?? ''
  const misused = code === 'BadArguments' || code === 'TorNetworkState' || code.startsWith('ERR_PARSE_ARGS')
  console.error(`tor-network: ${messageOf(error)}${misused ? `\n\n${help}` : ''}`)
  process.exitCode = misused ? 2 : 1
}
