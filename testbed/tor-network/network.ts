import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { codeOf, PosternError } from '../../src/core/errors.ts'
import { type AuthorityPlan, makeAuthority } from './authority.ts'
import { waitForBootstrap } from './bootstrap.ts'
import { equalBandwidths, offsetOfFirstVote, waitForDescriptors } from './first-vote.ts'
import { freePorts } from './ports.ts'
import { endedEarly, spawnTor, type TorProcess } from './process.ts'
import {
  authorityOptions,
  clientOptions,
  processOptions,
  relayOptions,
  type TorOptions,
  torrc,
  type Vote,
} from './torrc.ts'

/** How to reach a network that runs, for a client, a service or a visitor. */
export interface TorNetworkAccess {
  /** torrc options of a daemon of this network; a value of several lines is the option given several times. */
  readonly options: TorOptions
  /** The visitor client's SocksPort on 127.0.0.1: no ExtendedErrors, streams apart by SOCKS user and password. */
  readonly socksPort: number
  /** The visitor client's control port: a unix socket with cookie authentication. */
  readonly client: { readonly controlPath: string }
}

/** A private Tor network on loopback, until `stop`. The state folder stays, with the logs. */
export interface TorNetwork extends TorNetworkAccess, AsyncDisposable {
  stop(): Promise<void>
}

export interface TorNetworkOptions {
  /** A folder of its own; made if missing, what an earlier network left in it is replaced. Keep its path short. */
  state: string
  /** Name on PATH or a path; default `tor`. */
  torBinary?: string
  /** Told of each step: `ports`, `keys`, `start`, `bootstrap`, `ready`, later perhaps `lost` with a process's name. */
  onStep?: (step: string, detail?: string) => void
  /** Gives up: everything that was started ends, and the signal's reason is thrown. */
  signal?: AbortSignal
}

const authorities = ['auth1', 'auth2', 'auth3'] as const
const relays = ['relay1', 'relay2', 'relay3', 'relay4'] as const
const visitor = 'client'
const maxTries = 3

/** sun_path of Linux holds 108 bytes with its end mark. */
const maxSocketPath = 107

/**
 * Starts 3 directory authorities, 4 relays and a visitor client, all on 127.0.0.1, and resolves once the client can
 * build circuits. Every process dies with the caller, even by kill -9.
 *
 * @throws PosternError `TorNetworkState` (bad folder), `TorNetworkProgram` (tor, tor-gencert or setpriv missing or
 *   failed), `TorNetworkProcess` (a tor ended; names it and its last lines), `TorNetworkPortTaken` (three times in a
 *   row), `TorNetworkTimeout`.
 */
export async function startTorNetwork(options: TorNetworkOptions): Promise<TorNetwork> {
  const state = resolve(options.state)
  checkStateFolder(state)
  await mkdir(state, { recursive: true, mode: 0o700 })
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(state, options)
    } catch (error) {
      if (codeOf(error) !== 'TorNetworkPortTaken' || attempt === maxTries) throw error
    }
  }
}

async function startOnce(state: string, options: TorNetworkOptions): Promise<TorNetwork> {
  const { torBinary = 'tor', onStep = () => {}, signal } = options
  signal?.throwIfAborted()
  onStep('ports', 'on 127.0.0.1')
  const ports = await freePorts(2 * authorities.length + relays.length + 1)
  const nextPort = () => ports.pop()!
  const names = [...authorities, ...relays, visitor]
  for (const name of names) await clearFolder(state, name)

  onStep('keys', `of ${authorities.length} directory authorities`)
  const plans = authorities.map(
    (nickname): AuthorityPlan => ({
      nickname,
      folder: join(state, nickname),
      orPort: nextPort(),
      dirPort: nextPort(),
    }),
  )
  const lines = await Promise.all(plans.map((plan) => makeAuthority(plan, torBinary, signal)))

  const client = clientOptions(lines)
  const socksPort = nextPort()
  const controlPath = controlPathIn(state)
  const authorityTorrc = (plan: AuthorityPlan, vote?: Vote): TorOptions => ({
    ...relayOptions(plan.nickname, plan.orPort),
    ...authorityOptions(plan.dirPort, vote),
  })
  const members: [string, TorOptions][] = [
    ...plans.map((plan): [string, TorOptions] => [plan.nickname, authorityTorrc(plan)]),
    ...relays.map((nickname): [string, TorOptions] => [nickname, relayOptions(nickname, nextPort())]),
    [
      visitor,
      { SocksPort: `127.0.0.1:${socksPort}`, ControlPort: `unix:${controlPath}`, CookieAuthentication: '1' },
    ],
  ]
  const writeTorrc = async (name: string, own: TorOptions): Promise<string> => {
    const folder = join(state, name)
    await writeFile(`${folder}.torrc`, torrc(client, processOptions(folder, process.pid), own), {
      mode: 0o600,
    })
    return `${folder}.torrc`
  }

  onStep('start', `${members.length} tor processes`)
  const processes = new Map<string, TorProcess>()
  let stopping = false
  const stop = async () => {
    stopping = true
    await Promise.all([...processes.values()].map((tor) => tor.stop()))
  }
  const failed = new AbortController()
  const abort = () => failed.abort(signal?.reason)
  signal?.addEventListener('abort', abort)
  try {
    for (const [name, own] of members) {
      const tor = spawnTor({
        name,
        torrc: await writeTorrc(name, own),
        log: join(state, `${name}.log`),
        torBinary,
      })
      processes.set(name, tor)
      void tor.exited.then(async (how) => {
        if (!stopping) failed.abort(await endedEarly(tor, how))
      })
    }
    signal?.throwIfAborted()
    const fingerprints = await waitForDescriptors(
      plans.map((plan) => plan.dirPort),
      authorities.length + relays.length,
      failed.signal,
    )
    onStep('vote', 'every authority knows every relay')
    const bandwidthFile = join(state, 'bandwidths')
    await writeFile(bandwidthFile, equalBandwidths(fingerprints))
    const vote = { offset: await offsetOfFirstVote(failed.signal), bandwidthFile }
    for (const plan of plans) {
      await writeTorrc(plan.nickname, authorityTorrc(plan, vote))
      processes.get(plan.nickname)!.reload()
    }
    await waitForBootstrap({
      log: processes.get(visitor)!.log,
      onProgress: (progress) => onStep('bootstrap', progress),
      signal: failed.signal,
    })
  } catch (error) {
    await stop()
    // A wait that was ended early tells only that; why stands in the signal.
    throw failed.signal.aborted ? failed.signal.reason : error
  } finally {
    signal?.removeEventListener('abort', abort)
  }
  for (const tor of processes.values()) {
    void tor.exited.then((how) =>
      stopping ? undefined : onStep('lost', `${tor.name}: ${how}, see ${tor.log}`),
    )
  }
  onStep('ready', `SOCKS on 127.0.0.1:${socksPort}`)
  return { options: client, socksPort, client: { controlPath }, stop, [Symbol.asyncDispose]: stop }
}

async function clearFolder(state: string, name: string): Promise<void> {
  const folder = join(state, name)
  for (const path of [folder, `${folder}.log`, `${folder}.torrc`])
    await rm(path, { recursive: true, force: true })
  await mkdir(folder, { mode: 0o700 })
}

function controlPathIn(state: string): string {
  return join(state, visitor, 'control')
}

function checkStateFolder(state: string): void {
  const length = Buffer.byteLength(controlPathIn(state))
  if (length > maxSocketPath) {
    throw new PosternError(
      'TorNetworkState',
      `the state folder's path is too long for unix sockets by ${length - maxSocketPath} bytes: choose a shorter one than ${state}`,
    )
  }
  // torrc knows several kinds of quoting, and not every option honours them.
  if (!/^[\w./@+:=,~-]+$/.test(state)) {
    throw new PosternError(
      'TorNetworkState',
      `the state folder's path may hold only letters, digits and ./@+:=,~_- here: choose another than ${state}`,
    )
  }
}
