/**
 * What is tried for an onion that visitors cannot reach though its own tor says that all is well. Such onions are known
 * from the field, most come back by themselves within minutes, and some not for a day, until tor is started anew. So:
 * first the onion is published anew, which costs it a second; then that again, and tor forgets what it learnt of bad
 * circuits; and if more than half of a daemon's onions are away, tor is started anew. After that only the condition
 * tells. Pauses grow, and a budget bounds it all, so that healing can never be worse than the ill.
 *
 * Pure: what is, and the time, go in; what is to be remembered and the steps come out.
 */

export interface OnionHealing {
  /** Times that it was published anew, ever: the agent acts when this grows. */
  renewal: number
  /** Steps of the ladder that were taken since it became unreachable. */
  attempts: number
  /** Looks in a row that had failed at the last step. */
  failures: number
  /** Milliseconds since the epoch. */
  lastAttempt?: number
  /** When it was published anew, the newest last; milliseconds since the epoch. */
  republished: readonly number[]
}

export interface DaemonHealing {
  /** Times that tor was started anew, ever; and that it was made to use new circuits. */
  restarts: number
  freshCircuits: number
  lastRestart?: number
}

/** An onion of a daemon, as it is seen from outside. */
export interface Patient {
  name: string
  healing: OnionHealing
  /**
   * well: visitors reach it; ill: they do not, that is certain, and it is tor's doing; unknown: neither is certain, or
   * it is somebody else's doing.
   */
  state: 'well' | 'ill' | 'unknown'
  /** Looks in a row that failed. */
  failures: number
}

export type HealingStep = 'Republish' | 'FreshCircuits' | 'Restart'

export interface Healed {
  /** Only those whose memory is another now. */
  onions: Map<string, OnionHealing>
  /** Set where it is another now. */
  daemon?: DaemonHealing
  steps: { onion: string; step: HealingStep }[]
  /** Milliseconds after which time alone may change the outcome. */
  again?: number
}

export const HEALING_LIMITS: Readonly<
  Record<'pauseMs' | 'freshFailures' | 'republishes' | 'budgetMs' | 'restartMs', number>
> = {
  /** Between the first step and the second; doubles. Longer than a client remembers failed introductions (2 min). */
  pauseMs: 5 * 60_000,
  /** Looks that must have failed since the last step: the first of them may have begun before it. */
  freshFailures: 2,
  /** Of one onion within the time of the budget. */
  republishes: 4,
  budgetMs: 24 * 3_600_000,
  /** Between two restarts of one tor. */
  restartMs: 6 * 3_600_000,
}

export const NOT_HEALED: OnionHealing = { renewal: 0, attempts: 0, failures: 0, republished: [] }
export const DAEMON_NOT_HEALED: DaemonHealing = { restarts: 0, freshCircuits: 0 }

export function heal(patients: readonly Patient[], daemon: DaemonHealing, now: number): Healed {
  const result: Healed = { onions: new Map(), steps: [] }
  const lookAt = (time: number): void => {
    const wait = Math.max(0, time - now)
    if (result.again === undefined || wait < result.again) result.again = wait
  }
  let freshen = false
  const waiting: Patient[] = []
  for (const patient of patients) {
    const { name, healing, state } = patient
    if (state === 'well' && healing.attempts > 0) {
      result.onions.set(name, { ...healing, attempts: 0, failures: 0 })
    }
    if (state !== 'ill' || healing.attempts > 2 || !isDue(patient, now, lookAt)) continue
    if (healing.attempts === 2) {
      waiting.push(patient)
      continue
    }
    const spent = within(healing.republished, HEALING_LIMITS.budgetMs, now)
    if (spent.length >= HEALING_LIMITS.republishes) {
      lookAt(Math.min(...spent) + HEALING_LIMITS.budgetMs)
      continue
    }
    const step = healing.attempts === 0 ? 'Republish' : 'FreshCircuits'
    freshen ||= step === 'FreshCircuits'
    result.steps.push({ onion: name, step })
    result.onions.set(name, {
      ...attempted(patient, now),
      renewal: healing.renewal + 1,
      republished: [...spent, now],
    })
  }
  const restart = waiting.length > 0 && mostAreIll(patients) && mayRestart(daemon, now, lookAt)
  if (restart) {
    for (const patient of waiting) {
      result.steps.push({ onion: patient.name, step: 'Restart' })
      result.onions.set(patient.name, attempted(patient, now))
    }
  }
  if (restart || freshen) {
    result.daemon = {
      ...daemon,
      freshCircuits: daemon.freshCircuits + (freshen ? 1 : 0),
      ...(restart ? { restarts: daemon.restarts + 1, lastRestart: now } : {}),
    }
  }
  return result
}

/** Whether the pause since the last step is over, and the step is known not to have helped. */
function isDue({ healing, failures }: Patient, now: number, lookAt: (time: number) => void): boolean {
  const { attempts, lastAttempt, failures: then } = healing
  // Fewer than at the step: it was reached in between, or is looked at by somebody else.
  const fresh = attempts === 0 || failures < then ? failures : failures - then
  if (fresh < HEALING_LIMITS.freshFailures) return false
  if (attempts === 0 || lastAttempt === undefined) return true
  const due = lastAttempt + HEALING_LIMITS.pauseMs * 2 ** (attempts - 1)
  // A clock that was set back must not keep an onion from being healed.
  if (due <= now || lastAttempt - now > HEALING_LIMITS.pauseMs) return true
  lookAt(due)
  return false
}

function attempted({ healing, failures }: Patient, now: number): OnionHealing {
  return { ...healing, attempts: healing.attempts + 1, failures, lastAttempt: now }
}

/** tor itself is at fault, rather than one onion of many. */
function mostAreIll(patients: readonly Patient[]): boolean {
  return patients.filter(({ state }) => state === 'ill').length * 2 > patients.length
}

function mayRestart({ lastRestart }: DaemonHealing, now: number, lookAt: (time: number) => void): boolean {
  if (lastRestart === undefined || within([lastRestart], HEALING_LIMITS.restartMs, now).length === 0)
    return true
  lookAt(lastRestart + HEALING_LIMITS.restartMs)
  return false
}

/** Times that lie so close to now, on either side: a clock may have been set back a little. */
function within(times: readonly number[], milliseconds: number, now: number): number[] {
  return times.filter((time) => Math.abs(now - time) < milliseconds)
}
