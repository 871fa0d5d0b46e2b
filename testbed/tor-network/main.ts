import { parseArgs } from 'node:util'
import { messageOf } from '../../src/core/errors.ts'
import { startTorNetwork } from './network.ts'

/** The private Tor network by hand: `npm run -s tor-network -- --state DIR [--json]`. */

const HELP = `Usage: npm run -s tor-network -- --state DIR [--json]

Starts a private Tor network on 127.0.0.1 (3 authorities, 4 relays, a visitor's client) and runs until SIGTERM.

  --state DIR  folder of its own; a short path
  --json       print one line {"options", "socksPort"} once the client can build circuits:
               options go as they are into TorDaemon.spec.options, socksPort is a visitor's

Example: npm run -s tor-network -- --state /tmp/net --json
`

function refuse(message: string): never {
  process.stderr.write(`tor-network: ${message}\n\n${HELP}`)
  process.exit(2)
}

function readArguments(): { state: string; json: boolean } {
  const options = {
    state: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  } as const
  let values: { state?: string; json: boolean; help: boolean }
  try {
    values = parseArgs({ options }).values
  } catch (error) {
    refuse(messageOf(error))
  }
  if (values.help) {
    process.stdout.write(HELP)
    process.exit(0)
  }
  if (values.state === undefined || values.state === '') refuse('--state DIR is required')
  return { state: values.state, json: values.json }
}

const { state, json } = readArguments()
const stop = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort())
try {
  await using network = await startTorNetwork({
    state,
    signal: stop.signal,
    onStep: (step, detail) => {
      if (!json) console.log(detail === undefined ? step : `${step}: ${detail}`)
    },
  })
  const { options, socksPort } = network
  if (json) console.log(JSON.stringify({ options, socksPort }))
  else console.log(`a visitor's SOCKS proxy is 127.0.0.1:${socksPort}; Ctrl-C ends the network`)
  // An abort listener alone does not keep the process alive.
  const alive = setInterval(() => {}, 1 << 30)
  if (!stop.signal.aborted) await new Promise((done) => stop.signal.addEventListener('abort', done))
  clearInterval(alive)
} catch (error) {
  if (!stop.signal.aborted) {
    process.stderr.write(`tor-network: ${messageOf(error)}\n`)
    process.exitCode = 1
  }
}
