import type { ControlClient } from '../control/client.ts'
import type { BridgeSet } from './bridge-set.ts'

/** How a running tor gets at the network, by its own options. */
export interface NetworkAccess {
  /** DisableNetwork is 0. */
  on: boolean
  /** Set: UseBridges is 1. Lines in the order that tor has them. */
  bridges?: { plugin: string; lines: readonly string[] }
}

type Control = Pick<ControlClient, 'getConf' | 'setConf'>
type Entries = [name: string, value: string | undefined][]

export async function readNetworkAccess(control: Pick<Control, 'getConf'>): Promise<NetworkAccess> {
  const conf = await control.getConf('DisableNetwork', 'UseBridges', 'Bridge', 'ClientTransportPlugin')
  const on = conf.DisableNetwork?.[0] === '0'
  if (conf.UseBridges?.[0] !== '1') return { on }
  return { on, bridges: { plugin: (conf.ClientTransportPlugin ?? []).join('\n'), lines: conf.Bridge ?? [] } }
}

/** Connects without bridges, also where there were some. */
export async function accessDirectly(
  control: Control,
  from: NetworkAccess,
  network: boolean,
): Promise<NetworkAccess> {
  const entries: Entries = []
  // tor refuses to lose its bridges while it is told to use them; in one command it looks at the whole.
  if (from.bridges !== undefined) {
    entries.push(['UseBridges', '0'], ['Bridge', undefined], ['ClientTransportPlugin', undefined])
  }
  if (network && !from.on) entries.push(['DisableNetwork', '0'])
  if (entries.length > 0) await control.setConf(entries)
  return { on: from.on || network }
}

/** Connects through these bridges alone: one command, at no moment of which there is another way. */
export async function accessThrough(
  control: Control,
  from: NetworkAccess,
  { plugin, bridges }: BridgeSet,
  network: boolean,
): Promise<NetworkAccess> {
  const lines = bridges.map(({ line }) => line)
  // What was connected directly would stay so for as long as it is used.
  const closed = from.bridges === undefined ? await accessNothing(control, from) : from
  await control.setConf([
    ['ClientTransportPlugin', plugin],
    ['UseBridges', '1'],
    ...lines.map((line): [string, string] => ['Bridge', line]),
    ...(network && !closed.on ? [['DisableNetwork', '0'] as [string, string]] : []),
  ])
  return { on: closed.on || network, bridges: { plugin, lines } }
}

/** Ends every connection to the network, and opens none. */
export async function accessNothing(control: Control, from: NetworkAccess): Promise<NetworkAccess> {
  if (from.on) await control.setConf([['DisableNetwork', '1']])
  return { ...from, on: false }
}

/** Whether tor has these bridges already; how they stand in its list is no difference. */
export function accessesThrough({ bridges }: NetworkAccess, set: BridgeSet): boolean {
  if (bridges === undefined || bridges.plugin !== set.plugin) return false
  const has = [...bridges.lines].sort()
  const wanted = set.bridges.map(({ line }) => line).sort()
  return has.length === wanted.length && has.every((line, index) => line === wanted[index])
}
