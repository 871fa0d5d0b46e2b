import { setTimeout as pause } from 'node:timers/promises'
import { codeOf } from '../core/errors.ts'
import type { Dial } from './dial.ts'

const FIRST_MS = 50
const MOST_MS = 400

/**
 * Dials again for a while where nothing answers: a backend that is just being replaced costs its visitors a moment
 * instead of an error.
 *
 * @param patienceMs since the first attempt; after that the last error stands
 */
export function patient(dial: Dial, patienceMs: number): Dial {
  return async (client, signal) => {
    const end = performance.now() + patienceMs
    for (let wait = FIRST_MS; ; wait = Math.min(MOST_MS, wait * 2)) {
      try {
        return await dial(client, signal)
      } catch (error) {
        if (codeOf(error) !== 'DialFailed' || performance.now() + wait > end) throw error
        await pause(wait, undefined, { signal })
      }
    }
  }
}
