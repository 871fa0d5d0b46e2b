import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { codeOf, PosternError } from '../../src/core/errors.ts'
import { type AuthorityPlan, makeAuthority } from './authority.ts'
import { offsetOfFirstVote, waitForConsensus, waitForDescriptors } from './first-consensus.ts'
import { Members } from './members.ts'
import { freePorts } from './ports.ts'
import { authorityOptions, clientOptions, exitOptions, relayOptions, type TorOptions } from './torrc.ts'

/** How to reach a network that runs, for a client, a service or a visitor. */
export interface TorNetworkAccess {
  /** torrc options of a daemon of this network; a value of several lines is the option given several times. */
  readonly options: TorOptions
  /** The visitor client's SocksPort on 127.0.0.1: no ExtendedErrors, streams apart by SOCKS user and password. */
  readonly socksPort: number
  /** The visitor client's control port: a unix socket with cookie authentication. */
  readonly client: { readonly controlPath: string }
}

/** A private Tor network on this machine, until `stop`. The state folder stays, with the logs. */
export interface TorNetwork extends TorNetworkAccess, AsyncDisposable {
  stop(): Promise<void>
}

export interface TorNetworkOptions {
  /** A folder of its own; made if missing, what an earlier network left in it is replaced. Keep its path short. */
  state: string
  /**
   * Where authorities and relays listen: an IPv4 address of this machine that every daemon of the network reaches.
   * Default 127.0.0.1.
   */
  address?: string
  /** One relay more, which goes out to addresses of this machine; default none. */
  exit?: boolean
  /** Name on PATH or a path; default `tor`. */
  torBinary?: string
  /**
   * Told of each step: `ports`, `keys`, `start`, `vote`, `consensus`, `bootstrap` (often), `ready`; `lost` at any time,
   * with the name of a process that ended by itself.
   */
  onStep?: (step: string, detail?: string) => void
  /** Gives up: everything that was started ends, and the signal's reason is thrown. */
  signal?: AbortSignal
}

const authorities = ['auth1', 'auth2', 'auth3'] as const
const relays = ['relay1', 'relay2', 'relay3', 'relay4'] as const
const exit = 'exit1'
const visitor = 'client'
const maxTries = 3

/** sun_path of Linux holds 108 bytes with its end mark. */
const maxSocketPath = 107

/**
 * Starts 3 directory authorities, 4 relays and a visitor client, all on one address, and resolves once the client can
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
  const { address = '127.0.0.1', torBinary = 'tor', onStep = () => {}, signal } = options
  signal?.throwIfAborted()
  onStep('ports', `on ${address}`)
  const ports = await freePorts(2 * authorities.length + relays.length + 2, address)
  const nextPort = () => ports.pop()!
  for (const name of [...authorities, ...relays, exit, visitor]) await clearFolder(state, name)

  onStep('keys', `of ${authorities.length} directory authorities`)
  const plans = authorities.map(
    (nickname): AuthorityPlan => ({
      nickname,
      folder: join(state, nickname),
      address,
      orPort: nextPort(),
      dirPort: nextPort(),
    }),
  )
  const lines = await Promise.all(plans.map((plan) => makeAuthority(plan, torBinary, signal)))

  const members = new Members(state, torBinary, clientOptions(lines), onStep)
  const abort = () => members.fail(signal?.reason)
  signal?.addEventListener('abort', abort)
  if (signal?.aborted) abort()
  try {
    const others = relays.map((name: string) => [name, relayOptions(name, address, nextPort())] as const)
    if (options.exit) others.push([exit, exitOptions(exit, address, nextPort())])
    await startRelays(members, plans, others, onStep)
    const socksPort = nextPort()
    const controlPath = controlPathIn(state)
    await members.start(visitor, {
      SocksPort: `127.0.0.1:${socksPort}`,
      ControlPort: `unix:${controlPath}`,
      CookieAuthentication: '1',
    })
    await members.bootstrapped(visitor, 100, (progress) => onStep('bootstrap', progress))
    onStep('ready', `SOCKS on 127.0.0.1:${socksPort}`)
    const stop = () => members.stop()
    return { options: members.shared, socksPort, client: { controlPath }, stop, [Symbol.asyncDispose]: stop }
  } catch (error) {
    await members.stop()
    // A wait that was ended early tells only that; why stands in the signal.
    throw members.failed.aborted ? members.failed.reason : error
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}

/**
 * All at once, but the first vote waits for the last relay, and relays are made to look for its result as soon as it is
 * there: by themselves they ask ever more rarely, and a client that gets a 404 from one of them waits for 10 s.
 */
async function startRelays(
  members: Members,
  plans: readonly AuthorityPlan[],
  others: readonly (readonly [nickname: string, options: TorOptions])[],
  onStep: (step: string, detail?: string) => void,
): Promise<void> {
  const authorityTorrc = (plan: AuthorityPlan, offset?: number): TorOptions => ({
    ...relayOptions(plan.nickname, plan.address, plan.orPort),
    ...authorityOptions(plan.address, plan.dirPort, offset),
  })
  const listening = plans.map((plan) => `${plan.address}:${plan.dirPort}`)
  onStep('start', `${authorities.length} directory authorities and ${others.length} relays`)
  for (const plan of plans) await members.start(plan.nickname, authorityTorrc(plan))
  for (const [nickname, options] of others) await members.start(nickname, options)
  await waitForDescriptors(listening, authorities.length + others.length, members.failed)
  onStep('vote', 'every authority knows every relay')
  const offset = await offsetOfFirstVote(members.failed)
  for (const plan of plans) await members.reload(plan.nickname, authorityTorrc(plan, offset))
  await waitForConsensus(listening, members.failed)
  onStep('consensus', 'every relay fetches it')
  for (const [nickname] of others) await members.reload(nickname)
  await Promise.all(others.map(([nickname]) => members.bootstrapped(nickname, 75)))
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
