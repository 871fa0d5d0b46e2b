import type { StatusEvent } from '../control/events.ts'
import { parseArguments } from '../control/quote.ts'

export interface Bootstrap {
  /** 0 to 100 */
  progress: number
  /** tor's words on what it does or waits for. */
  summary: string
}

/** Reads the answer to `GETINFO status/bootstrap-phase`; undefined when it is none. */
export function bootstrapOfPhase(text: string): Bootstrap | undefined {
  try {
    const { words, values } = parseArguments(text)
    return words[1] === 'BOOTSTRAP' ? read(Object.fromEntries(values)) : undefined
  } catch {
    return undefined
  }
}

/** Reads a STATUS_CLIENT event; undefined when it does not speak of the bootstrap. */
export function bootstrapOfEvent(event: StatusEvent): Bootstrap | undefined {
  return event.action === 'BOOTSTRAP' ? read(event.args) : undefined
}

function read(args: Record<string, string>): Bootstrap | undefined {
  const progress = Number(args.PROGRESS)
  if (!Number.isInteger(progress) || progress < 0 || progress > 100) return undefined
  const parts = [args.SUMMARY, args.WARNING, args.REASON].filter((part) => part !== undefined && part !== '')
  return { progress, summary: parts.join(': ').slice(0, 300) }
}
