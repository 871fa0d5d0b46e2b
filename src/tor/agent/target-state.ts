import type { TargetState } from '../contract.ts'
import type { ProbeResult } from './probes.ts'

export interface TargetFacts {
  /** Of the newest probe; undefined: none yet. */
  probe: ProbeResult | undefined
  listening: boolean
  /** Why it is not listened on. */
  error?: string
  /** Why the key of a private onion cannot be used. */
  unusable: string | undefined
}

/** What the report says of one target of a proxy. */
export function targetState(
  proxy: string,
  target: string,
  { probe, listening, error, unusable }: TargetFacts,
): TargetState {
  const { reachable, reason, message, probed } = probe ?? {}
  return {
    proxy,
    target,
    ...(reachable === undefined ? {} : { reachable }),
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
    ...(probed === undefined ? {} : { probed }),
    ...(unusable === undefined ? {} : { reachable: false, reason: 'ClientAuthMissing', message: unusable }),
    listening,
    ...(error === undefined ? {} : { reason: 'ListenFailed', message: error }),
  }
}
