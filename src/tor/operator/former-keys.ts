import type { FormerAddress } from '../api/onion-service.ts'
import type { TorReport } from '../contract.ts'
import { admitted } from './client-keys.ts'
import type { FormerKey, ObservedOnion } from './observed.ts'
import { encodedKey } from './onion-keys.ts'

/** Addresses that an onion had before, which lead to it until their time is over. */

export interface ServedFormer {
  served: string
  address: string
  /** 64 bytes in base64. A secret. */
  encoded: string
}

/** Former addresses that the daemon is to serve. One that has become another onion's is that one's alone. */
export function servedFormer({ object, former = [], clients }: ObservedOnion, now: number): ServedFormer[] {
  if (object.metadata.deletionTimestamp !== undefined || admitted(clients)?.length === 0) return []
  const seen = new Set<string>()
  return former.flatMap(({ served, until, key, holder }) => {
    if (until <= now || holder !== undefined || key.state !== 'valid' || seen.has(key.address)) return []
    seen.add(key.address)
    return [{ served, address: key.address, encoded: encodedKey(key.secret) }]
  })
}

/** Milliseconds until the first of them ends. */
export function nextEnd({ former = [] }: ObservedOnion, now: number): number | undefined {
  const left = former.map(({ until }) => until - now).filter((one) => one > 0)
  return left.length === 0 ? undefined : Math.min(...left)
}

/** The `former` of an onion's status. */
export function formerAddresses(
  onion: ObservedOnion,
  report: TorReport | undefined,
  now: number,
): FormerAddress[] {
  const served = new Set(servedFormer(onion, now).map((one) => one.served))
  return (onion.former ?? [])
    .filter(({ until }) => until > now)
    .map((one) => {
      const address = one.key.state === 'valid' ? one.key.address : undefined
      const state = report?.onions.find(({ name }) => name === one.served)
      const reason = reasonOf(one)
      return {
        name: one.secret,
        ...(address === undefined ? {} : { hostname: `${address}.onion` }),
        published: served.has(one.served) && state?.address === address && state?.state === 'published',
        ...(reason === undefined ? {} : { reason }),
      }
    })
}

function reasonOf({ key, holder }: FormerKey): string | undefined {
  if (key.state === 'bad') return key.message.slice(0, 1024)
  return holder === undefined ? undefined : `OnionService ${holder} has this address now`
}
