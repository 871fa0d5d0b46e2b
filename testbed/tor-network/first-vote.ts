import { setTimeout as sleep } from 'node:timers/promises'
import { PosternError } from '../../src/core/errors.ts'

const pollMs = 150
const limitMs = 60_000
const maxBytes = 1024 * 1024

/**
 * Waits until every authority has the descriptors of `count` relays, and gives the relays' fingerprints. A first
 * consensus without some of them would be the network for the next voting intervals.
 */
export async function waitForDescriptors(
  dirPorts: readonly number[],
  count: number,
  signal: AbortSignal,
): Promise<string[]> {
  const limit = Date.now() + limitMs
  let seen: string[][] = []
  while (Date.now() < limit) {
    seen = await Promise.all(dirPorts.map((port) => fingerprintsAt(port, signal)))
    if (seen.every((fingerprints) => fingerprints.length >= count)) return seen[0] ?? []
    await sleep(pollMs, undefined, { signal })
  }
  const known = seen.map((fingerprints) => fingerprints.length).join(', ')
  throw new PosternError(
    'TorNetworkTimeout',
    `the directory authorities know ${known} of ${count} relays after ${limitMs / 1000} s: see the logs in the state folder`,
  )
}

async function fingerprintsAt(dirPort: number, signal: AbortSignal): Promise<string[]> {
  try {
    const reply = await fetch(`http://127.0.0.1:${dirPort}/tor/server/all`, {
      headers: { 'accept-encoding': 'identity' },
      signal: AbortSignal.any([signal, AbortSignal.timeout(2000)]),
    })
    const text = (await reply.text()).slice(0, maxBytes)
    if (!reply.ok) return []
    return [...text.matchAll(/^fingerprint ((?:[0-9A-F]{4} ?){10})$/gm)].map((match) =>
      match[1]!.replaceAll(' ', ''),
    )
  } catch {
    signal.throwIfAborted()
    return []
  }
}

/**
 * A `V3BandwidthsFile` that says the same of every relay. Without it relays count by the traffic they have seen, which is
 * next to none: one of them gets nearly all the weight, is chosen as guard and as last hop of the same circuit, and no
 * circuit can be built (a relay refuses to extend back to the hop before) until a consensus or two later.
 */
export function equalBandwidths(fingerprints: readonly string[]): string {
  const lines = fingerprints.map((fingerprint) => `node_id=$${fingerprint} bw=1000`)
  return [Math.floor(Date.now() / 1000), ...lines, ''].join('\n')
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
