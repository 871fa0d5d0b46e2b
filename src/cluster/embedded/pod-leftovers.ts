import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Set to the real path of the state in every pod's environment: tells our processes from all others. */
export const STATE_MARKER = 'POSTERN_POD_STATE'
/** Set to `namespace/pod/container`. */
export const POD_MARKER = 'POSTERN_POD'

/** Ids of the processes whose environment holds all of the given `NAME=value` entries. Zombies have none. */
export function findMarked(markers: readonly string[]): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      const environment = readEnvironment(name)
      return markers.every((marker) => environment.includes(`\0${marker}\0`))
    })
    .map(Number)
}

function readEnvironment(pid: string): string {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, 'utf8')}\0`
  } catch {
    return '' // Gone, or another user's.
  }
}

/**
 * Kills with SIGKILL all processes that carry the markers, whatever group they moved to, and waits until they are
 * gone. Returns the ids of those that would not go within the limit.
 *
 * @param limit milliseconds
 */
export async function killMarked(markers: readonly string[], limit = 5000): Promise<number[]> {
  const end = Date.now() + limit
  for (;;) {
    const left = findMarked(markers)
    if (left.length === 0 || Date.now() > end) return left
    for (const pid of left) killQuietly(pid, 'SIGKILL')
    await sleep(10)
  }
}

/** Sends a signal to a process, or with a negative id to a whole group; one that is gone is fine. */
export function killQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // ESRCH: that is what was wanted. EPERM: not ours to end.
  }
}
