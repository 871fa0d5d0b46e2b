// The relay as a process of its own, for the bench: argv is host and port of the backend; prints its port.
import { dialTcp } from '../src/relay/dial.ts'
import { listen } from '../src/relay/listener.ts'

const [host = '127.0.0.1', port = '0'] = process.argv.slice(2)
const backend = { host, port: Number(port) }
const relay = await listen({
  address: { host: '127.0.0.1', port: 0 },
  dial: dialTcp(() => [backend]),
  idleTimeoutMs: 600_000,
})
if ('port' in relay.address) console.log(relay.address.port)
// The bench holds our standard input: when it dies, however that may be, we end too.
process.stdin.on('end', () => process.exit(0)).resume()
