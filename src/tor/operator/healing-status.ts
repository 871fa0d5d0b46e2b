import { timestamp } from '../../core/conditions.ts'
import type { DaemonHealingStatus, OnionHealingStatus } from '../api/probe.ts'
import {
  DAEMON_NOT_HEALED,
  type DaemonHealing,
  HEALING_LIMITS,
  NOT_HEALED,
  type OnionHealing,
} from './healing.ts'

/**
 * What is remembered of healing stands in the status of the objects: an operator that starts anew goes on where the one
 * before it was. What cannot be read there counts as never tried.
 */

export function readOnionHealing(status: unknown): OnionHealing {
  const { renewal, attempts, failures, lastAttempt, republished } = objectOf(status)
  const last = time(lastAttempt)
  const times = Array.isArray(republished) ? republished.flatMap((one) => time(one) ?? []) : []
  return {
    renewal: count(renewal),
    attempts: count(attempts),
    failures: count(failures),
    ...(last === undefined ? {} : { lastAttempt: last }),
    republished: times.slice(-HEALING_LIMITS.republishes),
  }
}

/** Undefined where nothing was ever tried. */
export function onionHealingStatus(healing: OnionHealing): OnionHealingStatus | undefined {
  const { lastAttempt, republished, ...counts } = healing
  if (Object.values(counts).every((value) => value === 0) && lastAttempt === undefined) return undefined
  return {
    ...counts,
    ...(lastAttempt === undefined ? {} : { lastAttempt: timestamp(lastAttempt) }),
    ...(republished.length === 0 ? {} : { republished: republished.map(timestamp) }),
  }
}

export function readDaemonHealing(status: unknown): DaemonHealing {
  const { restarts, freshCircuits, lastRestart } = objectOf(status)
  const last = time(lastRestart)
  return {
    restarts: count(restarts),
    freshCircuits: count(freshCircuits),
    ...(last === undefined ? {} : { lastRestart: last }),
  }
}

export function daemonHealingStatus({
  lastRestart,
  ...counts
}: DaemonHealing): DaemonHealingStatus | undefined {
  if (
    counts.restarts === DAEMON_NOT_HEALED.restarts &&
    counts.freshCircuits === DAEMON_NOT_HEALED.freshCircuits
  ) {
    return undefined
  }
  return { ...counts, ...(lastRestart === undefined ? {} : { lastRestart: timestamp(lastRestart) }) }
}

function count(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : NOT_HEALED.renewal
}

function time(value: unknown): number | undefined {
  const parsed = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(parsed) ? undefined : parsed
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
