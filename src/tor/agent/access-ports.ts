import { Convergence } from '../../agent/convergence.ts'
import { messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import type { AccessPort, AccessState, TorAccess } from '../contract.ts'
import type { ControlClient } from '../control/client.ts'
import { ControlError } from '../control/errors.ts'

type Control = Pick<ControlClient, 'getConf' | 'setConf' | 'getInfo'>

export interface AccessPortsOptions {
  /** The pod's address: the only one that is listened on. */
  host: string
  /** Values of SocksPort that are the agent's own, and stay whatever is asked for. */
  socks: readonly string[]
  log: Logger
  onChange(): void
  /** Pause before a port that could not be opened is tried again; default 2 s. */
  retryMs?: number
}

/** One way in, as tor has it. */
interface Way {
  name: AccessState['name']
  option: 'SocksPort' | 'HTTPTunnelPort'
  /** Key of GETINFO under which its listeners stand. */
  listeners: string
}

const WAYS: readonly Way[] = [
  { name: 'socks', option: 'SocksPort', listeners: 'net/listeners/socks' },
  { name: 'httpConnect', option: 'HTTPTunnelPort', listeners: 'net/listeners/httptunnel' },
]
const RETRY_MS = 2_000

/**
 * Ports of the pod's address at which tor itself takes workloads in. It keeps clients of different addresses, and of
 * different SOCKS users, on circuits of their own.
 *
 * Three things of tor shape this. A port that cannot be opened makes tor refuse the command that turns the network on:
 * so ports are configured only while it is on. The flags of a port that is open do not change with its options: so it is
 * closed first, and a port that was for onions and all is never left so. And SocksPort is one list, in which the agent's
 * own sockets stand.
 */
export class AccessPorts {
  readonly #options: AccessPortsOptions
  readonly #states = new Map<AccessState['name'], { listening: boolean; message?: string }>()
  #wanted: TorAccess = {}
  #streams = 0
  readonly #convergence: Convergence<Control>

  constructor(options: AccessPortsOptions) {
    this.#options = options
    this.#convergence = new Convergence({
      converge: (control) => this.#look(control),
      failed: (error) => {
        options.log.warn({ error: messageOf(error) }, 'the ports for workloads could not be set')
        return this.#retryMs
      },
    })
  }

  /** What should be open. */
  want(access: TorAccess = {}): void {
    this.#wanted = access
    void this.look()
  }

  /** A tor that was just got hold of. */
  attach(control: Control): void {
    void this.#convergence.attach(control)
  }

  detach(): void {
    this.#convergence.detach()
    this.#states.clear()
    this.#options.onChange()
  }

  close(): void {
    this.#convergence.stop()
  }

  /** Looks whether all is as it should be: the network may have been turned on or off. Resolves once it has. */
  look(): Promise<void> {
    return this.#convergence.look()
  }

  /** Streams that workloads have, as of the last {@link count}. */
  get streams(): number {
    return this.#streams
  }

  /** @param others streams that came in at the agent's own sockets: tor does not tell them apart */
  async count(others: number): Promise<void> {
    const control = this.states === undefined ? undefined : this.#convergence.live
    const status = (await control?.getInfo('stream-status'))?.['stream-status'] ?? ''
    const all = status.split('\n').filter((line) => line.trim() !== '').length
    this.#streams = Math.max(0, all - others)
  }

  /** One each of the ports that are asked for; undefined where there are none. */
  get states(): AccessState[] | undefined {
    const wanted = WAYS.filter(({ name }) => this.#wanted[name] !== undefined)
    if (wanted.length === 0) return undefined
    return wanted.map(({ name }) => ({ name, ...(this.#states.get(name) ?? { listening: false }) }))
  }

  async #look(control: Control): Promise<void> {
    const on = (await control.getConf('DisableNetwork')).DisableNetwork?.[0] === '0'
    let settled = true
    for (const way of WAYS) settled = (await this.#converge(control, way, on)) && settled
    if (!settled) this.#convergence.lookAfter(this.#retryMs)
  }

  get #retryMs(): number {
    return this.#options.retryMs ?? RETRY_MS
  }

  /** @returns false where it has to be looked at again */
  async #converge(control: Control, way: Way, on: boolean): Promise<boolean> {
    const { host } = this.#options
    const wish = this.#wanted[way.name]
    const own = way.option === 'SocksPort' ? this.#options.socks : []
    const port = wish === undefined ? undefined : `${host.includes(':') ? `[${host}]` : host}:${wish.port}`
    // An address that stands for all would open it to whoever reaches the machine.
    const anywhere = /^[0:.]*$/.test(host)
    const wanted = wish === undefined || !on || anywhere ? [] : [portValue(port!, wish)]
    const has = ((await control.getConf(way.option))[way.option] ?? []).filter((one) => !own.includes(one))
    let message = anywhere && wish !== undefined ? `${host} is not the address of one pod` : undefined
    const opened = async (): Promise<boolean> =>
      on && port !== undefined && (await listeners(control, way)).includes(port)
    const set = (values: readonly string[]): Promise<void> =>
      control.setConf(
        values.length === 0 ? [[way.option, undefined]] : values.map((value) => [way.option, value]),
      )
    if (has.join('\n') !== wanted.join('\n') || (wanted.length > 0 && !(await opened()))) {
      try {
        if (has.length > 0) await set(own)
        if (wanted.length > 0) await set([...own, ...wanted])
      } catch (error) {
        if (!(error instanceof ControlError)) throw error
        message = `tor cannot listen on ${port}: ${messageOf(error)}`
      }
    }
    const open = await opened()
    this.#note(way.name, wish === undefined ? undefined : open, message)
    return open || port === undefined || !on
  }

  #note(name: AccessState['name'], listening: boolean | undefined, message: string | undefined): void {
    const before = this.#states.get(name)
    if (before?.listening === listening && before?.message === message) return
    if (listening === undefined) this.#states.delete(name)
    else this.#states.set(name, { listening, ...(message === undefined ? {} : { message }) })
    if (message !== undefined && before?.message !== message) this.#options.log.error({ name }, message)
    this.#options.onChange()
  }
}

/** The value of SocksPort or HTTPTunnelPort. Separation by address and by user is tor's default, and written out all the same. */
export function portValue(address: string, { exit }: AccessPort): string {
  const isolation = `${address} IsolateClientAddr IsolateSOCKSAuth`
  return exit === 'All' ? isolation : `${isolation} OnionTrafficOnly`
}

async function listeners(control: Control, { listeners }: Way): Promise<string[]> {
  const text = (await control.getInfo(listeners))[listeners] ?? ''
  return [...text.matchAll(/"([^"]*)"/g)].map(([, address]) => address!)
}
