import { setTimeout as sleep } from 'node:timers/promises'

/** True, or what was seen instead, a line each. */
export type Seen = true | string[]

/**
 * Waits until something is so, and fails with what was seen instead when the time is over. What `look` throws counts as
 * seen.
 *
 * @returns milliseconds that it took
 */
export async function eventually(
  what: string,
  look: () => Seen | Promise<Seen>,
  limit = 120_000,
): Promise<number> {
  const begun = performance.now()
  for (;;) {
    let seen: Seen
    try {
      seen = await look()
    } catch (error) {
      seen = [String(error)]
    }
    const took = performance.now() - begun
    if (seen === true) return took
    if (took > limit) {
      const lines = seen.slice(0, 20).map((line) => `\n  ${line}`)
      throw new Error(`waited ${limit / 1000} s for ${what}; saw (${seen.length}):${lines.join('')}`)
    }
    await sleep(100)
  }
}

/** Nothing is to be there. */
export function none(lines: string[]): Seen {
  return lines.length === 0 || lines
}

/** `1.2 s`, for diagnostics. */
export function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(milliseconds < 10_000 ? 2 : 1)} s`
}
