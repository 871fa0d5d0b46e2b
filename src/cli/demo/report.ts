import { messageOf } from '../../core/errors.ts'

export interface StepTime {
  name: string
  seconds: number
}

/** What `postern demo --once --output json` prints. */
export type DemoReport =
  | { ok: true; onion: string; steps: StepTime[]; total: number }
  | { ok: false; reason: string; steps: StepTime[]; conditions: string[] }

export function succeeded(onion: string, steps: StepTime[]): DemoReport {
  return { ok: true, onion, steps, total: rounded(steps.reduce((sum, step) => sum + step.seconds, 0)) }
}

/** @param step the one that did not end, if any */
export function failed(
  error: unknown,
  step: string | undefined,
  steps: StepTime[],
  conditions: string[],
): DemoReport {
  const where = step === undefined ? '' : `${step}: `
  return { ok: false, reason: `${where}${messageOf(error)}`, steps, conditions }
}

/** Seconds, to the millisecond. */
export function rounded(seconds: number): number {
  return Math.round(seconds * 1000) / 1000
}
