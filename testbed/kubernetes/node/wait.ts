import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf, PosternError } from '../../../src/core/errors.ts'

/**
 * Asks until the answer is neither undefined nor false, and gives it. What is thrown means not yet. Rejects after `limit`
 * milliseconds with what was seen last: what was thrown, and what `seen` gives.
 */
export async function waitUntil<T>(
  what: string,
  limit: number,
  ask: () => Promise<T | undefined | false>,
  seen?: () => unknown,
): Promise<T> {
  const end = Date.now() + limit
  let last: unknown
  for (;;) {
    try {
      const answer = await ask()
      if (answer !== undefined && answer !== false) return answer
      last = undefined
    } catch (error) {
      last = error
    }
    if (Date.now() > end) break
    await sleep(50)
  }
  const shown = [
    ...(last === undefined ? [] : [messageOf(last)]),
    ...(seen === undefined ? [] : [await describe(seen)]),
  ]
  const message = `waited ${limit / 1000} s for ${what}; seen: ${shown.join('\n') || 'nothing'}`
  throw new PosternError('NodeWait', message, { cause: last })
}

async function describe(seen: () => unknown): Promise<string> {
  const value = await Promise.resolve().then(seen).catch(messageOf)
  return typeof value === 'string' ? value : (JSON.stringify(value, undefined, 2) ?? 'nothing')
}
