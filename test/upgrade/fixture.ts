import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Secret } from '../../src/cluster/kinds.ts'
import type { Condition } from '../../src/core/conditions.ts'
import { keyOf, type Resource } from '../../src/core/resource.ts'

/** Objects as a release left them, and who owned which of their fields. */
export interface Recorded {
  object: Resource
  /** By `apply:`, `update:` or `status:` and the field manager. */
  managers: Record<string, string[]>
}

export interface Fixture {
  version: string
  /** State folder, not to be written: `objects.db`. */
  folder: string
  recorded: Recorded[]
}

/** One a folder beside this file that is named like a version. */
export const FIXTURES: Fixture[] = readdirSync(import.meta.dirname, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && /^\d+\.\d+\.\d+/.test(entry.name))
  .map(({ name }) => {
    const folder = join(import.meta.dirname, name)
    const lines = readFileSync(join(folder, 'objects.jsonl'), 'utf8').trimEnd().split('\n')
    return { version: name, folder, recorded: lines.map((line) => JSON.parse(line) as Recorded) }
  })

export interface DoorStatus {
  observedGeneration?: number
  hostname?: string
  conditions?: Condition[]
}

/** The objects that users declare or look at: they have a status of ours. */
export function isDoor({ apiVersion }: Resource): boolean {
  return apiVersion.startsWith('tor.fr0st.dev/')
}

/** Whether a Secret holds the key of an onion, whoever made it. */
export function isOnionKey(object: Resource): boolean {
  return object.kind === 'Secret' && (object as Secret).data?.hs_ed25519_secret_key !== undefined
}

export function idOf(object: Resource): string {
  return `${object.kind} ${keyOf(object)}`
}

/** What of the status of a door does not speak of what is there now, or says that something was taken: a line each. */
export function complaints(door: Resource, before: Resource): string[] {
  const status = (door.status ?? {}) as DoorStatus
  const old = before.status as DoorStatus | undefined
  const say = (what: string): string => `${idOf(door)}: ${what}`
  const lines: string[] = []
  if (status.hostname !== old?.hostname)
    lines.push(say(`its address was ${old?.hostname}, is ${status.hostname}`))
  if (status.observedGeneration !== door.metadata.generation) {
    lines.push(say(`generation ${status.observedGeneration} observed of ${door.metadata.generation}`))
  }
  if ((status.conditions ?? []).length === 0) lines.push(say('no conditions'))
  for (const { type, status: holds, reason, message } of status.conditions ?? []) {
    const refused = /Taken$|^ObjectRefused$|^KeyInUse/.test(reason)
    if (refused || (type === 'KeyValid' && holds !== 'True'))
      lines.push(say(`${type} ${holds} ${reason} ${message}`))
  }
  return lines
}
