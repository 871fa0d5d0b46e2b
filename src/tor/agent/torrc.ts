import { join } from 'node:path'
import type { TorTopology } from '../contract.ts'
import { refusedOption } from '../options.ts'

/** Where one tor has its things. Paths under `run` are short: a unix socket's path has 107 bytes. */
export interface TorPaths {
  /** tor's DataDirectory. */
  data: string
  control: string
  /** Carries data: answers plainly. */
  socks: string
  /** Only says why something failed: its F-codes may stand on a stream that works. */
  socksExtended: string
  torrc: string
  /** Folder of the sockets that virtual ports point to. */
  onions: string
  /** Folder of the onions that tor has from its configuration. */
  folders: string
}

export function torPaths(data: string, run: string): TorPaths {
  return {
    data: join(data, 'tor'),
    control: join(run, 'control'),
    socks: join(run, 'socks'),
    socksExtended: join(run, 'socks-x'),
    torrc: join(run, 'torrc'),
    onions: join(run, 'o'),
    folders: join(data, 'onions'),
  }
}

/** An option and its values, one a line. */
export type Setting = [name: string, values: string[]]

export interface UserSettings {
  settings: Setting[]
  /** What was left out, and why; for a person. */
  refused: string[]
}

const LOG_LEVELS = ['debug', 'info', 'notice', 'warn', 'err']
const QUEUE_MIN = 64 * 1024 * 1024
const QUEUE_SHARE = 0.4

/** What follows from the topology's own fields and may change while tor runs. */
export function managedSettings(daemon: TorTopology['daemon']): Setting[] {
  const level = LOG_LEVELS.includes(daemon.logLevel) ? daemon.logLevel : 'notice'
  const settings: Setting[] = [['Log', [`${level} stdout`]]]
  if (daemon.memoryLimit !== undefined) {
    const bytes = Math.max(QUEUE_MIN, Math.floor(daemon.memoryLimit * QUEUE_SHARE))
    settings.push(['MaxMemInQueues', [`${bytes} bytes`]])
  }
  return settings
}

/** The user's torrc options, without those that would take tor out of the agent's hands. */
export function userSettings(options: Readonly<Record<string, string>>): UserSettings {
  const settings: Setting[] = []
  const refused: string[] = []
  for (const name of Object.keys(options).sort()) {
    const why = refusedOption(name) ?? (FIXED_NAMES.has(name.toLowerCase()) ? 'Postern sets it' : undefined)
    if (why !== undefined) {
      refused.push(`option ${name} is left out: ${why}`)
      continue
    }
    const values = options[name]!.split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '')
    if (values.length > 0) settings.push([name, values])
  }
  return { settings, refused }
}

function fixedSettings(paths: TorPaths): Setting[] {
  return [
    ['DataDirectory', [paths.data]],
    // The network is opened by one SETCONF, after everything else is in place.
    ['DisableNetwork', ['1']],
    ['ControlPort', [unixPort(paths.control)]],
    ['CookieAuthentication', ['1']],
    ['SocksPort', ownSocksPorts(paths)],
    ['SafeLogging', ['1']],
    ['AvoidDiskWrites', ['1']],
    // A daemon with proxies alone would fall asleep after a day without a connection.
    ['DormantTimeoutEnabled', ['0']],
    ['DormantCanceledByStartup', ['1']],
    ['ClientOnly', ['1']],
  ]
}

const FIXED_NAMES = new Set(
  fixedSettings(torPaths('/', '/'))
    .map(([name]) => name.toLowerCase())
    .filter((name) => !name.startsWith('dormant')),
)

/**
 * The torrc that tor starts with.
 *
 * @param user options of the user, checked by {@link userSettings}
 * @param owner process that tor must not outlive
 */
export function torrc(
  daemon: TorTopology['daemon'],
  user: readonly Setting[],
  paths: TorPaths,
  owner: number,
): string {
  const own = new Set(user.map(([name]) => name.toLowerCase()))
  const all = [
    ...fixedSettings(paths).filter(([name]) => !own.has(name.toLowerCase())),
    ['__OwningControllerProcess', [String(owner)]] as Setting,
    ...managedSettings(daemon),
    ...user,
  ]
  const lines = all.flatMap(([name, values]) => values.map((value) => `${name} ${quoteValue(value)}`))
  return `${lines.join('\n')}\n`
}

/** A value as a torrc takes it: quoted where it would not mean itself (`torrc` syntax, tor's confline.c). */
export function quoteValue(value: string): string {
  const plain = /^[!$-[\]-~]([ -"$-[\]-~]*[!-"$-[\]-~])?$/.test(value)
  if (plain) return value
  let text = ''
  for (const byte of Buffer.from(value, 'utf8')) {
    if (byte === 0x22 || byte === 0x5c) text += `\\${String.fromCharCode(byte)}`
    else if (byte < 0x20 || byte > 0x7e) text += `\\${byte.toString(8).padStart(3, '0')}`
    else text += String.fromCharCode(byte)
  }
  return `"${text}"`
}

/** The agent's own sockets, which stand in SocksPort whatever else does. */
export function ownSocksPorts(paths: TorPaths): string[] {
  return [unixPort(paths.socks), `${unixPort(paths.socksExtended)} ExtendedErrors`]
}

function unixPort(path: string): string {
  return path.includes(' ') ? `unix:"${path}"` : `unix:${path}`
}
