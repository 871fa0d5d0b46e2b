import assert from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '../../src/core/logger.ts'
import { TorAgent } from '../../src/tor/agent/agent.ts'
import { BRIDGES_FILE, TOPOLOGY_FILE, type TorReport, type TorTopology } from '../../src/tor/contract.ts'
import { ControlClient } from '../../src/tor/control/client.ts'
import { relayFingerprint } from '../../src/tor/control/events.ts'
import { generateOnionKey } from '../../src/tor/onion/key.ts'

/** An agent with one onion and a daemon with bridges, in the hands of a test by its two folders. */
export interface BridgedAgent extends AsyncDisposable {
  readonly agent: TorAgent
  /** With `.onion`. */
  readonly host: string
  /** Everything that agent and tor logged. */
  log(): string
  report(): Omit<TorReport, 'revision'>
  /** Writes the file of bridges, in this order. */
  bridges(...lines: string[]): void
  topology(daemon?: Partial<TorTopology['daemon']>): void
  /** Waits for a state, with a limit. */
  until<T>(what: string, look: () => T | Promise<T>, milliseconds?: number): Promise<NonNullable<T>>
  /** State of a bridge with its reason: `healthy`, `dead NoAnswer`. */
  state(fingerprint: string): string | undefined
  /** Writes down from now on whom tor connects to and when its options change. */
  watch(): Promise<Watch>
  scrape(): Promise<string>
}

export interface Watch {
  /** Fingerprints, or addresses where tor names none. */
  readonly met: Set<string>
  /** Names of options that changed, one list a change. */
  readonly changes: string[][]
  /** Circuits that hold the onion in the network. */
  introductions(): Promise<string[]>
  /** Whom tor is connected to, or about to be, now. */
  connections(): Promise<string[]>
}

export async function startBridgedAgent(
  options: Record<string, string>,
  backendPort: number,
  transport = 'obfs4',
): Promise<BridgedAgent> {
  const base = mkdtempSync(join(tmpdir(), 'ba-'))
  for (const folder of ['topology', 'keys']) await mkdir(join(base, folder))
  const key = generateOnionKey()
  const put = (folder: string, name: string, content: string | Uint8Array): void => {
    writeFileSync(join(base, folder, '.new'), content)
    renameSync(join(base, folder, '.new'), join(base, folder, name))
  }
  const topology = (daemon: Partial<TorTopology['daemon']> = { bridges: { transport } }): void => {
    const endpoints = [{ host: '127.0.0.1', port: backendPort }]
    const document: TorTopology = {
      version: 1,
      daemon: { name: 'tor', namespace: 'shop', logLevel: 'info', options, ...daemon },
      onions: [{ name: 'web', address: key.address, since: 1, ports: [{ virtualPort: 80, endpoints }] }],
      proxies: [],
    }
    put('topology', TOPOLOGY_FILE, JSON.stringify(document))
  }
  let log = ''
  const write = (fields: object, message?: string): void => {
    log += `${JSON.stringify(fields)} ${message}\n`
  }
  put('keys', 'web.key', key.secret)
  topology()
  const agent = await TorAgent.start({
    topology: join(base, 'topology'),
    keys: join(base, 'keys'),
    data: join(base, 'data'),
    run: join(base, 'run'),
    address: '127.0.0.1',
    log: { trace: write, debug: write, info: write, warn: write, error: write, fatal: write } as Logger,
    reportPort: 0,
    metricsPort: 0,
    bridgesEveryMs: 1_000,
  })
  const watching: ControlClient[] = []
  const it: BridgedAgent = {
    agent,
    host: `${key.address}.onion`,
    log: () => log,
    report: () => agent.report,
    bridges: (...lines) => put('keys', BRIDGES_FILE, lines.map((line) => `${line}\n`).join('')),
    topology,
    async until(what, look, milliseconds = 60_000) {
      for (const end = Date.now() + milliseconds; ; await pause(50)) {
        const found = await look()
        if (found) return found as NonNullable<typeof found>
        if (Date.now() < end) continue
        const report = JSON.stringify(agent.report, null, 1)
        assert.fail(`waited ${milliseconds} ms for ${what}; saw: ${report}\n${log.slice(-4_000)}`)
      }
    },
    state(fingerprint) {
      const found = agent.report.bridges?.find((bridge) => bridge.fingerprint === fingerprint)
      return found && [found.state, found.reason].join(' ').trim()
    },
    async watch() {
      const control = await it.until('the control port', async () => {
        try {
          const client = await ControlClient.connect({ path: join(base, 'run', 'control') })
          await client.authenticate()
          return client
        } catch {
          return undefined
        }
      })
      watching.push(control)
      return watchOf(control)
    },
    async scrape() {
      const reply = await fetch(`http://127.0.0.1:${agent.ports.metrics}/metrics`)
      return reply.text()
    },
    async [Symbol.asyncDispose]() {
      for (const control of watching) await control.close()
      await agent.close()
      rmSync(base, { recursive: true, force: true })
    },
  }
  return it
}

/** @param control authenticated; the watch ends with it */
export async function watchOf(control: ControlClient): Promise<Watch> {
  const met = new Set<string>()
  const changes: string[][] = []
  control.onEvent((event, { lines }) => {
    if (event.type === 'ORCONN') met.add(event.fingerprint ?? event.target)
    if (lines[0]?.text === 'CONF_CHANGED')
      changes.push(lines.slice(1, -1).map(({ text }) => text.split('=')[0]!))
  })
  await control.setEvents(['ORCONN', 'CONF_CHANGED'])
  const list = async (key: string): Promise<string[]> =>
    ((await control.getInfo(key))[key] ?? '').split('\n').filter((line) => line.trim() !== '')
  return {
    met,
    changes,
    introductions: async () =>
      (await list('circuit-status'))
        .filter((line) => /HS_STATE=HSSI_ESTABLISHED/.test(line))
        .map((line) => line.split(' ')[0]!)
        .sort(),
    connections: async () =>
      (await list('orconn-status')).map((line) => {
        const [target] = line.split(' ')
        return relayFingerprint(target!) ?? target!
      }),
  }
}
