import type { ReportSource } from '../../cluster/reports.ts'
import type { OutsideCall } from '../../controller/plan.ts'
import type { ReportIdentity } from '../../controller/report-identity.ts'
import { messageOf } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import { REPORT_PORT } from '../contract.ts'

/** Pods that were told are remembered, so many of them. */
const TOLD = 1000

/**
 * Tells pods that are ending that they are not needed any more. Without an answer they end by themselves, a little
 * later: so a call that fails is not worth a retry of everything.
 */
export class Retirement {
  readonly #retire: (source: ReportSource) => Promise<void>
  readonly #log: Logger
  /** By daemon: its keys Secret may be gone before its last pod is. */
  readonly #identities = new Map<string, ReportIdentity>()
  readonly #told = new Set<string>()

  constructor(retire: (source: ReportSource) => Promise<void>, log: Logger) {
    this.#retire = retire
    this.#log = log
  }

  know(daemon: string, identity: ReportIdentity): void {
    this.#identities.set(daemon, identity)
  }

  forget(daemon: string): void {
    this.#identities.delete(daemon)
  }

  async call({ with: pod }: OutsideCall): Promise<void> {
    const { daemon = '', name, uid = '', address = '' } = pod
    const identity = this.#identities.get(daemon)
    if (identity === undefined || this.#told.has(uid)) return
    this.#told.add(uid)
    if (this.#told.size > TOLD) this.#told.delete(this.#told.keys().next().value!)
    const { certificate, token } = identity
    try {
      await this.#retire({ host: address, port: REPORT_PORT, certificate, token })
      this.#log.debug({ daemon, pod: name }, 'pod retired')
    } catch (error) {
      this.#log.debug({ daemon, pod: name, error: messageOf(error) }, 'pod could not be told to retire')
    }
  }
}
