import { setTimeout as sleep } from 'node:timers/promises'
import { lockState, type StateLock } from '../../src/cluster/embedded/lock.ts'
import { codeOf, messageOf } from '../../src/core/errors.ts'

/** The lock of a folder, or undefined if another living process has it. The kernel releases it with its holder. */
export function tryLock(folder: string): StateLock | undefined {
  try {
    return lockState(folder)
  } catch (error) {
    if (codeOf(error) === 'StateInUse') return undefined
    throw error
  }
}

/** Does something while nobody else does it; waits for its turn, and says once for whom. */
export async function locked<T>(
  folder: string,
  action: () => Promise<T>,
  waiting?: (who: string) => void,
): Promise<T> {
  let told = false
  for (;;) {
    let lock: StateLock
    try {
      lock = lockState(folder)
    } catch (error) {
      if (codeOf(error) !== 'StateInUse') throw error
      if (!told) waiting?.(messageOf(error))
      told = true
      await sleep(100)
      continue
    }
    try {
      return await action()
    } finally {
      lock.release()
    }
  }
}
