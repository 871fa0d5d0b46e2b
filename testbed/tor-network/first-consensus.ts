import { setTimeout as sleep } from 'node:timers/promises'
import { PosternError } from '../../src/core/errors.ts'

const pollMs = 100
const limitMs = 60_000
const maxBytes = 1024 * 1024

/**
 * Waits until every authority (`address:dirPort`) has the descriptors of `count` relays. A first consensus without some of them would be the
 * network for the next voting intervals.
 */
export function waitForDescriptors(
  authorities: readonly string[],
  count: number,
  signal: AbortSignal,
): Promise<void> {
  return untilAll(authorities, `the descriptors of ${count} relays`, signal, async (authority) => {
    const text = await download(authority, '/tor/server/all', signal)
    return (text.match(/^router /gm) ?? []).length >= count
  })
}

/** Waits until every authority has published a consensus. */
export function waitForConsensus(authorities: readonly string[], signal: AbortSignal): Promise<void> {
  return untilAll(authorities, 'a consensus', signal, async (authority) => {
    const text = await download(authority, '/tor/status-vote/current/consensus-microdesc', signal)
    return text.includes('directory-signature ')
  })
}

/**
 * The `TestingV3AuthVotingStartOffset` with which a first interval of 8 s ends 5 s from now: authorities vote after 1 s,
 * compute the consensus after 3 s and publish it after 5 s. (tor shortens both delays to a quarter of the interval where
 * they exceed half of it. With one second each, authorities miss each other's votes: they look once a second.)
 * Called late in a second it waits for the next one, so that every authority hears of it in time.
 */
export async function offsetOfFirstVote(signal: AbortSignal): Promise<number> {
  const past = Date.now() % 1000
  if (past > 500) await sleep(1000 - past, undefined, { signal })
  return (Math.floor(Date.now() / 1000) + 5) % 8
}

async function untilAll(
  authorities: readonly string[],
  what: string,
  signal: AbortSignal,
  has: (authority: string) => Promise<boolean>,
): Promise<void> {
  const limit = Date.now() + limitMs
  let missing = authorities
  while (missing.length > 0) {
    if (Date.now() > limit) {
      throw new PosternError(
        'TorNetworkTimeout',
        `${missing.length} of ${authorities.length} directory authorities lack ${what} after ${limitMs / 1000} s: see auth1.log and others in the state folder`,
      )
    }
    const checked = await Promise.all(
      missing.map(async (authority) => ({ authority, done: await has(authority) })),
    )
    missing = checked.filter(({ done }) => !done).map(({ authority }) => authority)
    if (missing.length > 0) await sleep(pollMs, undefined, { signal })
  }
}

/** What an authority serves at a path; nothing while it does not answer or has nothing. */
async function download(authority: string, path: string, signal: AbortSignal): Promise<string> {
  try {
    const reply = await fetch(`http://${authority}${path}`, {
      headers: { 'accept-encoding': 'identity' },
      signal: AbortSignal.any([signal, AbortSignal.timeout(2000)]),
    })
    const text = await reply.text()
    return reply.ok ? text.slice(0, maxBytes) : ''
  } catch {
    signal.throwIfAborted()
    return ''
  }
}
