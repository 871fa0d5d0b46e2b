import { createHash } from 'node:crypto'
import { splitKey } from '../../core/resource.ts'

/**
 * Who looks at whose onions: all daemons stand in a ring, in an order that has nothing to do with their names, and each
 * is looked at by the next one of another namespace that can. So one that comes or goes moves few others, and no one
 * looks at much more than the rest where namespaces are many.
 */

export interface Assignment {
  /** By daemon: who looks at its onions. */
  prober: ReadonlyMap<string, string>
  /** By daemon: those at whose onions it looks, in the order of the ring. */
  watched: ReadonlyMap<string, readonly string[]>
}

/**
 * @param daemons keys of all, `namespace/name`
 * @param able    whether one can look
 */
export function assign(daemons: Iterable<string>, able: (daemon: string) => boolean): Assignment {
  const ring = [...daemons]
    .map((key) => ({ key, place: placeOf(key), namespace: splitKey(key).namespace }))
    .sort((a, b) => (a.place < b.place ? -1 : 1))
  const prober = new Map<string, string>()
  const watched = new Map<string, string[]>()
  /** Next one that can look, and next one that can and is of another namespace than that one. */
  let next: { key: string; namespace: string } | undefined
  let other: { key: string; namespace: string } | undefined
  // Twice round, backwards: the first time finds who is next for the end of the ring.
  for (let step = 2 * ring.length - 1; step >= 0; step -= 1) {
    const one = ring[step % ring.length]!
    if (step < ring.length) {
      const chosen = next?.namespace === one.namespace ? other : next
      if (chosen !== undefined) prober.set(one.key, chosen.key)
    }
    if (!able(one.key)) continue
    if (next !== undefined && next.namespace !== one.namespace) other = next
    next = one
  }
  for (const { key } of ring) {
    const by = prober.get(key)
    if (by === undefined) continue
    const list = watched.get(by)
    if (list === undefined) watched.set(by, [key])
    else list.push(key)
  }
  return { prober, watched }
}

function placeOf(key: string): string {
  return createHash('sha256').update(key).digest('hex')
}
