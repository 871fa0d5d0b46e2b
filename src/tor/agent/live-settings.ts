import { messageOf } from '../../core/errors.ts'
import type { ControlClient } from '../control/client.ts'
import { ControlError } from '../control/errors.ts'
import type { Setting } from './torrc.ts'

/** What has to be sent so that `applied` becomes `wanted`. Names are compared as tor does, without case. */
export function settingsDiff(
  applied: readonly Setting[],
  wanted: readonly Setting[],
): { set: Setting[]; reset: string[] } {
  const before = new Map(applied.map(([name, values]) => [name.toLowerCase(), values]))
  const after = new Set(wanted.map(([name]) => name.toLowerCase()))
  return {
    set: wanted.filter(([name, values]) => {
      const old = before.get(name.toLowerCase())
      return old === undefined || old.length !== values.length || old.some((value, i) => value !== values[i])
    }),
    reset: applied.map(([name]) => name).filter((name) => !after.has(name.toLowerCase())),
  }
}

/**
 * One group of options of a running tor: sends only what changed, all of it or nothing. What tor refuses is kept
 * for the report, and not sent again until it changes.
 */
export class LiveSettings {
  #applied: Setting[] = []
  #refused = ''
  /** Why the newest options are not in force; undefined when they are. */
  rejected: string | undefined

  /** The process was started with these. */
  startedWith(settings: readonly Setting[]): void {
    this.#applied = [...settings]
    this.#refused = ''
    this.rejected = undefined
  }

  /** @throws what the control connection throws, except a refusal */
  async apply(control: ControlClient, wanted: readonly Setting[]): Promise<void> {
    const text = JSON.stringify(wanted)
    if (text === this.#refused) return
    const { set, reset } = settingsDiff(this.#applied, wanted)
    try {
      if (set.length > 0) {
        await control.setConf(
          set.flatMap(([name, values]) => values.map((value): [string, string] => [name, value])),
        )
      }
      if (reset.length > 0) await control.resetConf(...reset)
    } catch (error) {
      if (!(error instanceof ControlError)) throw error
      this.#refused = text
      this.rejected = `tor goes on with its options from before: ${messageOf(error)}`
      return
    }
    this.#applied = [...wanted]
    this.#refused = ''
    this.rejected = undefined
  }
}
