import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { TOR_DAEMON } from '../src/tor/api/tor-daemon.ts'
import { ControlClient } from '../src/tor/control/client.ts'
import { backend, document, onionService, type Up } from '../test/e2e/up.ts'
import { reached } from '../test/e2e/visit.ts'
import type { Bridge } from '../testbed/tor-network/bridge.ts'
import { Members } from '../testbed/tor-network/members.ts'
import type { TorNetworkAccess } from '../testbed/tor-network/network.ts'

const LIMIT_MS = 120_000
interface Options {
  up: Up
  network: TorNetworkAccess
  bridge: Bridge
  /** For tors by themselves. */
  folder: string
  backendPort: number
  /** Of the page. */
  text: string
}

/** The first onion of a tor that did not run before: seconds until a visitor has its page. */
export class FirstOnions {
  readonly #it: Options

  constructor(options: Options) {
    this.#it = options
  }

  /** From the manifests of a daemon with a bridge. */
  bridged(index: number): Promise<number> {
    const namespace = `bridged-${index}`
    const seed = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'tor-bridges', namespace },
      data: { bridges: Buffer.from(this.#it.bridge.line).toString('base64') },
    }
    return this.#declared(namespace, { bridges: { seed: { name: 'tor-bridges' }, minHealthy: 1 } }, seed)
  }

  /** From the manifests of a daemon without. */
  direct(index: number): Promise<number> {
    return this.#declared(`direct-${index}`, {})
  }

  /** From the start of a tor whose torrc has the bridge and the onion. */
  async bare(index: number): Promise<number> {
    const { network, bridge, folder, backendPort } = this.#it
    const name = 't'
    const base = join(folder, `bare-${index}`)
    mkdirSync(join(base, name), { recursive: true, mode: 0o700 })
    const members = new Members(base, 'tor', network.options, () => {})
    try {
      const began = performance.now()
      await members.start(name, {
        UseBridges: '1',
        Bridge: bridge.line,
        ClientTransportPlugin: 'obfs4 exec /usr/bin/obfs4proxy',
        HiddenServiceDir: join(base, name, 'onion'),
        HiddenServicePort: `80 127.0.0.1:${backendPort}`,
        ControlPort: `unix:${join(base, name, 'c')}`,
        CookieAuthentication: '1',
      })
      await uploaded(join(base, name, 'c'))
      await this.#reached(readFileSync(join(base, name, 'onion', 'hostname'), 'utf8').trim())
      return (performance.now() - began) / 1000
    } finally {
      await members.stop()
    }
  }

  async #declared(namespace: string, spec: object, ...more: object[]): Promise<number> {
    const { up, network, backendPort } = this.#it
    const daemon = {
      apiVersion: 'tor.fr0st.dev/v1alpha1',
      kind: 'TorDaemon',
      metadata: { name: 'tor', namespace },
      spec: { options: network.options, ...spec },
    }
    const file = `${namespace}.yaml`
    const documents = [...more, daemon].map(document)
    const began = performance.now()
    up.write(
      file,
      [...documents, onionService('web', {}, namespace), backend('web', backendPort, namespace)].join(
        '---\n',
      ),
    )
    await this.#reached(await up.published('web', namespace))
    const seconds = (performance.now() - began) / 1000
    up.remove(file)
    await up.until('the daemon to go', () => up.get(TOR_DAEMON, 'tor', namespace) === undefined)
    return seconds
  }

  #reached(host: string): Promise<void> {
    return reached(this.#it.network.socksPort, host, this.#it.text, LIMIT_MS)
  }
}

/** Waits until a directory has acknowledged a descriptor of a tor that has just been started. */
async function uploaded(path: string): Promise<void> {
  const signal = AbortSignal.timeout(LIMIT_MS)
  let control: ControlClient | undefined
  while (control === undefined) {
    signal.throwIfAborted()
    control = await ControlClient.connect({ path }).catch(() => undefined)
    if (control === undefined) await pause(10)
  }
  try {
    await control.authenticate()
    const heard = Promise.withResolvers<void>()
    control.onEvent((_, { lines }) => {
      if (lines[0]?.text.startsWith('HS_DESC UPLOADED ')) heard.resolve()
    })
    signal.addEventListener('abort', () => heard.reject(signal.reason))
    await control.setEvents(['HS_DESC'])
    await heard.promise
  } finally {
    await control.close()
  }
}
