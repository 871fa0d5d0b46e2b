import { KUBERNETES_KINDS } from '../../src/cluster/kinds.ts'
import type { ApiClient } from '../../src/cluster/kubernetes/api-client.ts'
import type { Kind, Resource } from '../../src/core/resource.ts'
import { TOR_KINDS } from '../../src/tor/api/kinds.ts'
import { type Fixture, idOf, isDoor, type Recorded } from './fixture.ts'

/** Made by the parts of one machine, in whose place a cluster has its own: pods, and what follows from them. */
const MACHINE = 'postern-pods'
/** No cluster takes loopback addresses as endpoints. */
const ENDPOINT = '10.20.30.40'

export interface Placed {
  /** As the fixture has it. */
  before: Resource
  /** As the API server has it. */
  object: Resource
}

export const KINDS: Kind[] = [...KUBERNETES_KINDS, ...TOR_KINDS]

export function kindOf({ apiVersion, kind }: Resource): Kind {
  const found = KINDS.find((one) => one.apiVersion === apiVersion && one.kind === kind)
  if (found === undefined) throw new Error(`the fixture has an unknown kind: ${apiVersion} ${kind}`)
  return found
}

/**
 * Puts the objects of a release into a cluster as that release would have: by its field managers, with statuses, and
 * with owners by the UIDs that they have here.
 *
 * @param namespaces of the cluster, by those of the fixture
 */
export async function place(
  api: ApiClient,
  { recorded }: Fixture,
  namespaces: ReadonlyMap<string, string>,
): Promise<Placed[]> {
  const uids = new Map<string, string>()
  const mine = recorded.filter(
    ({ object, managers }) => object.kind !== 'Event' && !(`apply:${MACHINE}` in managers),
  )
  const placed: Placed[] = []
  // Owners first.
  const ordered = mine.toSorted((a, b) => Number(isDoor(b.object)) - Number(isDoor(a.object)))
  for (const one of ordered) {
    const object = await placeOne(api, one, namespaces, uids)
    uids.set(one.object.metadata.uid!, object.metadata.uid!)
    placed.push({ before: one.object, object })
  }
  return placed
}

async function placeOne(
  api: ApiClient,
  { object: before, managers }: Recorded,
  namespaces: ReadonlyMap<string, string>,
  uids: ReadonlyMap<string, string>,
): Promise<Resource> {
  const kind = kindOf(before)
  const { status, metadata, ...content } = JSON.parse(
    JSON.stringify(before).replaceAll(/"127\.\d+\.\d+\.\d+"/g, `"${ENDPOINT}"`),
  ) as Resource
  const { name, labels, annotations, ownerReferences } = metadata
  const here = {
    ...(content as Resource),
    metadata: {
      name,
      namespace: namespaces.get(metadata.namespace!)!,
      ...(labels && { labels }),
      ...(annotations && { annotations }),
    },
  }
  const owners = ownerReferences?.map((owner) => {
    const uid = uids.get(owner.uid)
    if (uid === undefined) throw new Error(`the owner of ${idOf(before)} is not in the fixture`)
    return { ...owner, uid }
  })
  const owned = owners ? { ...here, metadata: { ...here.metadata, ownerReferences: owners } } : here
  const byHow = (how: string): string[] =>
    Object.keys(managers).flatMap((key) => (key.startsWith(`${how}:`) ? [key.slice(how.length + 1)] : []))
  let now: Resource | undefined
  const appliers = byHow('apply')
  for (const manager of byHow('update')) {
    // What is applied over it later is what gives it an owner: set at its creation, no apply could take it back.
    now = await api.create(kind, appliers.length > 0 ? here : owned, { fieldManager: manager })
  }
  for (const manager of appliers) now = (await api.apply(kind, owned, { fieldManager: manager })).object
  for (const manager of byHow('status').filter((one) => one !== MACHINE)) {
    const patch = { apiVersion: kind.apiVersion, kind: kind.kind, metadata: here.metadata, status }
    now = (await api.apply(kind, patch, { fieldManager: manager, subresource: 'status' })).object
  }
  if (now === undefined) throw new Error(`nobody made ${idOf(before)}`)
  return now
}
