import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { SECRET } from '../src/cluster/kinds.ts'
import { ONION_SERVICE } from '../src/tor/api/onion-service.ts'
import { TOR_DAEMON } from '../src/tor/api/tor-daemon.ts'
import { ControlClient } from '../src/tor/control/client.ts'
import { watchOf } from '../test/e2e/bridged-agent.ts'
import { backend, document, onionService, type Up } from '../test/e2e/up.ts'
import type { Bridge } from '../testbed/tor-network/bridge.ts'
import type { TorNetworkAccess } from '../testbed/tor-network/network.ts'

const LIMIT_MS = 180_000
/** A distributor is asked, and a set of bridges that works is replaced, at most so often. */
const PACE_MS = 60_000
const TURNS = 10
const TURN = 'example.org/turn'

interface Options {
  up: Up
  network: TorNetworkAccess
  namespace: string
  seed: Bridge[]
  /** The one that the source gives first. */
  mortal: Bridge
  /** The one that it gives afterwards. */
  next: Bridge
  /** The source's address, at first and later. */
  first: string
  second: string
  backendPort: number
}

/** Circuits. */
export interface Lost {
  lost: number
  of: number
}

const lostOf = (before: readonly string[], now: readonly string[]): Lost => ({
  lost: before.filter((circuit) => !now.includes(circuit)).length,
  of: before.length,
})

/** A daemon with two bridges of its own and a fetched one, in a namespace of its own. */
export class BridgedDaemon {
  readonly #it: Options
  #settledAt = 0

  constructor(options: Options) {
    this.#it = options
  }

  write(): void {
    const { up, namespace, first, backendPort } = this.#it
    this.#seed(0)
    this.#daemon(first, 0)
    up.write(
      `${namespace}-web.yaml`,
      `${this.#onion('web', 0)}---\n${backend('web', backendPort, namespace)}`,
    )
  }

  /** Waits until all of its bridges carry, and its onion is published over them. */
  async settled(): Promise<void> {
    const { up, namespace, seed, mortal, second } = this.#it
    const all = [...seed, mortal]
    await up.until(
      'every bridge to be healthy',
      () => all.every((one) => this.#state(one) === 'healthy'),
      LIMIT_MS,
    )
    await up.published('web', namespace)
    // Another address is owed no patience: what is measured is not when a source may be asked again.
    this.#daemon(second, 0)
    this.#settledAt = performance.now()
  }

  /** Introduction circuits of the onion, and how many are lost by a number of reconciles that have nothing to do. */
  async lostByNothing(): Promise<Lost> {
    const { up, namespace, second } = this.#it
    await using control = await this.#control()
    const watch = await watchOf(control)
    const before = await watch.introductions()
    assert.ok(before.length > 0, 'no introduction circuits')
    for (let turn = 1; turn <= TURNS; turn++) {
      this.#seed(turn)
      this.#daemon(second, turn)
      up.write(`${namespace}-onion.yaml`, this.#onion('web', turn))
      const seen = (kind: typeof SECRET | typeof TOR_DAEMON | typeof ONION_SERVICE, name: string) =>
        up.get(kind, name, namespace)?.metadata.annotations?.[TURN] === String(turn)
      await up.until(
        `turn ${turn}`,
        () => seen(SECRET, 'tor-bridges') && seen(TOR_DAEMON, 'tor') && seen(ONION_SERVICE, 'web'),
      )
    }
    // What comes after them has come through the same hands.
    const fence = onionService('fence', {}, namespace, 'web')
    up.write(`${namespace}-fence.yaml`, fence)
    await up.published('fence', namespace)
    return lostOf(before, await watch.introductions())
  }

  /** The fetched bridge ends: seconds until it is told as dead, is replaced by one that carries, and is out of the set. */
  async death(): Promise<{ dead: number; replaced: number; evicted: number }> {
    const { up, mortal, next } = this.#it
    await pause(Math.max(0, this.#settledAt + PACE_MS - performance.now()))
    const began = performance.now()
    await mortal.stop()
    const after = async (what: string, look: () => boolean): Promise<number> => {
      await up.until(what, look, LIMIT_MS)
      return (performance.now() - began) / 1000
    }
    const [dead, replaced, evicted] = await Promise.all([
      after('the bridge to be told as dead', () => this.#state(mortal) === 'dead'),
      after('another one', () => this.#state(next) === 'healthy'),
      after('the bridge to be evicted', () => this.#state(mortal) === undefined),
    ])
    return { dead: dead!, replaced: replaced!, evicted: evicted! }
  }

  /** What a tor loses that is given the bridges that it has, the last first. */
  async lostByReordering(): Promise<Lost> {
    await using control = await this.#control()
    const watch = await watchOf(control)
    const before = await watch.introductions()
    const { Bridge: lines = [] } = await control.getConf('Bridge')
    assert.ok(before.length > 0 && lines.length > 1)
    await control.setConf(lines.toReversed().map((line) => ['Bridge', line] as const))
    let seen = lostOf(before, before)
    for (const end = performance.now() + 5_000; seen.lost < seen.of && performance.now() < end; ) {
      seen = lostOf(before, await watch.introductions())
      await pause(50)
    }
    return seen
  }

  #state(bridge: Bridge): string | undefined {
    const { up, namespace } = this.#it
    const told = up.get(TOR_DAEMON, 'tor', namespace)?.status?.bridges ?? []
    const all = told as { fingerprint: string; state: string }[]
    return all.find(({ fingerprint }) => fingerprint === bridge.fingerprint)?.state
  }

  /** The same two bridges, at each turn in another order and with other remarks. */
  #seed(turn: number): void {
    const { up, namespace, seed } = this.#it
    const lines = seed.map(({ line }) => line)
    const text = [`# turn ${turn}`, ...(turn % 2 === 0 ? lines : lines.toReversed()), ''].join('\n')
    up.write(
      `${namespace}-seed.yaml`,
      document({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'tor-bridges', namespace, annotations: { [TURN]: String(turn) } },
        data: { bridges: Buffer.from(text).toString('base64') },
      }),
    )
  }

  #daemon(source: string, turn: number): void {
    const { up, namespace, network } = this.#it
    const bridges = {
      seed: { name: 'tor-bridges' },
      source: { https: { url: source } },
      minHealthy: 3,
      maxBridges: 4,
      evictGraceSeconds: 1,
    }
    up.write(
      `${namespace}-tor.yaml`,
      document({
        apiVersion: 'tor.fr0st.dev/v1alpha1',
        kind: 'TorDaemon',
        metadata: { name: 'tor', namespace, annotations: { [TURN]: String(turn) } },
        spec: { options: network.options, bridges },
      }),
    )
  }

  #onion(name: string, turn: number): string {
    const { namespace } = this.#it
    const onion = JSON.parse(onionService(name, {}, namespace)) as { metadata: object }
    return document({ ...onion, metadata: { ...onion.metadata, annotations: { [TURN]: String(turn) } } })
  }

  /** Of its tor, known by the bridge that no other one has. */
  async #control(): Promise<ControlClient> {
    const { up, mortal, namespace } = this.#it
    for (const path of globSync('p/*/**/control', { cwd: up.state })) {
      const one = await ControlClient.connect({ path: join(up.state, path) })
      await one.authenticate()
      const { Bridge: lines = [] } = await one.getConf('Bridge')
      if (lines.some((line) => line.includes(mortal.fingerprint))) return one
      await one.close()
    }
    throw new Error(`no tor of ${namespace} has the bridge ${mortal.fingerprint}`)
  }
}
