import type { Pod } from '../../cluster/kinds.ts'
import { lookAgain, type Plan } from '../../controller/plan.ts'
import { keyFor } from '../../core/resource.ts'
import type { Mounts } from './mounts.ts'
import { MOUNTED_ANNOTATION } from './names.ts'
import type { Observed } from './observed.ts'
import { isEnding, isReady } from './world.ts'

/** What is asked of a daemon's pods: to look at their mounts, and to end once they are not needed any more. */

/** Of the first repetition; doubles up to a minute. */
const REPEAT_MS = 2_000
const REPEAT_MOST_MS = 60_000

/** A successor is made at once. Where none is after so long (its namespace goes, a quota is used up) none will come. */
const SUCCESSOR_MS = 10_000

/** The call that ends a pod which waits for its successor: with its `daemon` (a key), `name`, `uid` and `address`. */
export const RETIRE_CALL = 'tor.retire'

export function planPods(plan: Plan, observed: Observed, mounts: Mounts | undefined, now: number): void {
  const { pods, settings } = observed
  // Readiness of a pod says that its onions are published.
  const succeeded = observed.object === undefined || pods.some((pod) => !isEnding(pod) && isReady(pod))
  const alone = pods.every(isEnding)
  for (const pod of pods) {
    if (isEnding(pod)) {
      if (settings.lingerSeconds === 0) continue
      const wait = alone ? endingSince(pod) + SUCCESSOR_MS - now : Number.POSITIVE_INFINITY
      if (succeeded || wait <= 0) retire(plan, observed, pod)
      else if (alone) lookAgain(plan, wait)
    } else if (settings.volumesLag && mounts !== undefined && mounts.tooLarge === undefined) {
      planSync(plan, observed, pod, mounts, now)
    }
  }
}

/** When a pod was told to end: the time in its metadata is that of its grace's end. */
function endingSince({ metadata }: Pod): number {
  const grace = (metadata as { deletionGracePeriodSeconds?: number }).deletionGracePeriodSeconds ?? 0
  return Date.parse(metadata.deletionTimestamp ?? '') - grace * 1000
}

function retire(plan: Plan, { daemon }: Observed, pod: Pod): void {
  const address = pod.status?.podIP
  if (address === undefined) return
  const { name, uid = '' } = pod.metadata
  const key = keyFor(daemon.namespace, daemon.name)
  plan.calls.push({ name: RETIRE_CALL, with: { daemon: key, name, uid, address } })
}

/**
 * An annotation of the pod makes the kubelet look at its volumes at once. It names what should be mounted, and is
 * repeated, ever more rarely, while the agent reports something else: the kubelet may have looked before it heard of
 * the change.
 */
function planSync(plan: Plan, observed: Observed, pod: Pod, mounts: Mounts, now: number): void {
  const before = read(pod.metadata.annotations?.[MOUNTED_ANNOTATION])
  if (before.digest !== mounts.digest) {
    plan.apply.push(annotated(pod, `${mounts.digest}.0.${now}`))
    if (observed.pod === pod) lookAgain(plan, REPEAT_MS)
    return
  }
  const report = observed.pod === pod ? observed.view?.report : undefined
  if (report === undefined || report.applied === mounts.applied || report.rejected !== undefined) return
  const due = before.at + Math.min(REPEAT_MOST_MS, REPEAT_MS * 2 ** before.times)
  if (now < due) {
    lookAgain(plan, due - now)
    return
  }
  plan.apply.push(annotated(pod, `${mounts.digest}.${before.times + 1}.${now}`))
  lookAgain(plan, REPEAT_MS * 2 ** (before.times + 1))
}

function read(value: string | undefined): { digest: string; times: number; at: number } {
  const [digest = '', times = '', at = ''] = (value ?? '').split('.')
  return { digest, times: Math.min(10, Number(times) || 0), at: Number(at) || 0 }
}

function annotated(pod: Pod, value: string): Pod {
  const { namespace, name, uid } = pod.metadata
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      annotations: { [MOUNTED_ANNOTATION]: value },
    },
  }
}
