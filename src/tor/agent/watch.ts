import type { Logger } from '../../core/logger.ts'
import type { WatchedState, WatchPlan } from '../contract.ts'
import type { ControlClient } from '../control/client.ts'
import { NetworkCheck } from './network-check.ts'
import { visits } from './probe-visit.ts'
import { type ProbeAttempt, Probes, type ProbesOptions, type ProbeTarget } from './probes.ts'
import type { TorPaths } from './torrc.ts'

export interface WatchOptions {
  paths: Pick<TorPaths, 'socks' | 'socksExtended'>
  control(): ControlClient | undefined
  log: Logger
  onChange(): void
}

interface WatchTarget extends ProbeTarget {
  private: boolean
}

/** A visitor's tor learns of an onion from other directories than its own: right after an upload it may not find it. */
const FIRST_MS = 10_000
const RETRY_MS = 10_000
/** Not more than one a second: whoever looks is a guest in the network. */
const GAP_MS = 1_000
/** Longer than an agent is patient with a backend that does not answer. */
const HOLD_MS = 3_500
/** One failure is none: probes fail at random. */
const CONFIRM = 2
const MESSAGE_LIMIT = 1024
/** What who has no key to a private onion, or had one, gets to hear once its descriptor was found. */
const WITHOUT_KEY: ReadonlySet<string> = new Set(['ClientAuthMissing', 'ClientAuthWrong'])

/** Looks at onions of other daemons as a visitor does, through this daemon's tor. */
export class Watch {
  readonly #probes: Probes<WatchTarget>
  #plans: readonly WatchPlan[] = []

  /** @param pace for tests */
  constructor(
    { paths, control, log, onChange }: WatchOptions,
    pace: Partial<ProbesOptions<WatchTarget>> = {},
  ) {
    const network = new NetworkCheck({ control, log })
    const attempt: ProbeAttempt<ProbeTarget> = visits(paths, { holdMs: HOLD_MS })
    this.#probes = new Probes<WatchTarget>({
      attempt,
      onChange,
      network: () => network.works(),
      expected: ({ private: closed }, { reason }) =>
        closed && WITHOUT_KEY.has(reason)
          ? {
              reason: 'DescriptorFound',
              message: 'its descriptor was found; what it says is for its clients alone',
            }
          : undefined,
      firstMs: FIRST_MS,
      retryMs: RETRY_MS,
      gapMs: GAP_MS,
      confirm: CONFIRM,
      parallel: 3,
      ...pace,
    })
  }

  want(plans: readonly WatchPlan[]): void {
    this.#plans = plans
    this.#probes.want(new Map(plans.map((plan) => [keyOf(plan), targetOf(plan)])))
  }

  /** tor can carry streams, or cannot. */
  enable(on: boolean): void {
    this.#probes.enable(on)
  }

  /** In the order of the plans; undefined where there are none. */
  get states(): WatchedState[] | undefined {
    if (this.#plans.length === 0) return undefined
    return this.#plans.map((plan) => {
      const { namespace, name, address } = plan
      const { network, message, ...result } = this.#probes.result(keyOf(plan)) ?? { failures: 0 }
      return {
        namespace,
        name,
        address,
        ...result,
        ...(message === undefined ? {} : { message: message.slice(0, MESSAGE_LIMIT) }),
        ...(network === undefined ? {} : { circuits: network }),
      }
    })
  }

  close(): void {
    this.#probes.close()
  }
}

function keyOf({ namespace, name }: WatchPlan): string {
  return `${namespace}/${name}`
}

function targetOf({ address, port, http, every, private: closed }: WatchPlan): WatchTarget {
  return {
    onion: `${address}.onion`,
    port,
    everyMs: every * 1000,
    private: closed === true,
    ...(http === undefined ? {} : { http }),
  }
}
