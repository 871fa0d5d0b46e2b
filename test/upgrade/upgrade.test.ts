import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { EMBEDDED_SETTINGS } from '../../src/cli/compose.ts'
import { EmbeddedCluster } from '../../src/cluster/embedded/cluster.ts'
import { Store } from '../../src/cluster/embedded/store.ts'
import { DEPLOYMENT, SECRET, type Secret } from '../../src/cluster/kinds.ts'
import type { ApiClient } from '../../src/cluster/kubernetes/api-client.ts'
import { connect, loadSettings } from '../../src/cluster/kubernetes/connect.ts'
import { SILENT } from '../../src/core/logger.ts'
import { type Kind, keyOf, type Resource, refOf } from '../../src/core/resource.ts'
import { TOR_KINDS } from '../../src/tor/api/kinds.ts'
import { prepareTorOperator } from '../../src/tor/operator/operator.ts'
import type { KubernetesAccess } from '../../testbed/kubernetes/access.ts'
import { kubectl } from '../../testbed/kubernetes/kubectl.ts'
import { describeWithKubernetes } from '../../testbed/kubernetes/left-out.ts'
import { namespace, sharedKubernetes } from '../../testbed/kubernetes/shared.ts'
import { eventually, none } from '../faults/eventually.ts'
import { FaultProxy } from '../faults/fault-proxy.ts'
import { IMAGE, Operator, written } from '../faults/operator.ts'
import { CRDS, managersOf, quiet } from '../faults/world.ts'
import { complaints, FIXTURES, idOf, isDoor, isOnionKey } from './fixture.ts'
import { KINDS, kindOf, type Placed, place } from './in-cluster.ts'
import { Turns } from './turns.ts'

/** Objects and state of earlier releases keep working. */

const MANAGER = 'postern/tor'

/** Kinds of which one more would be another address, or another tor with the same keys. */
const UNIQUE: Kind[] = [SECRET, DEPLOYMENT, ...TOR_KINDS]

function uniqueOf(objects: readonly Resource[]): string[] {
  const kinds = UNIQUE.map(({ kind }) => kind)
  return objects
    .filter(({ kind }) => kinds.includes(kind))
    .map(idOf)
    .toSorted()
}

/** What of the spec of a Deployment may never change: the API server would refuse it, or pods would be lost. */
function selectorOf(deployment: Resource): unknown {
  return (deployment.spec as { selector: unknown }).selector
}

test('there is a release to upgrade from', () => {
  assert.notDeepEqual(FIXTURES, [])
})

for (const { version, folder, recorded } of FIXTURES) {
  describe(`the state folder of ${version}`, () => {
    const state = mkdtempSync(join(tmpdir(), 'pug-'))
    copyFileSync(join(folder, 'objects.db'), join(state, 'objects.db'))
    const store = new Store(state)
    const cluster = new EmbeddedCluster(store, KINDS)
    const now = ({ object }: { object: Resource }): Resource => {
      const found = store.get(refOf(object))
      assert.ok(found, `${idOf(object)} is gone`)
      return found
    }
    const daemons = recorded
      .filter(({ object }) => object.kind === 'TorDaemon')
      .map(({ object }) => keyOf(object))
    // Its processes ended with the version that started them.
    const lasting = recorded.filter(({ object }) => object.kind !== 'Pod')

    /** Runs the operator until no daemon has anything left to write; gives how often it wrote. */
    const run = async (): Promise<number> => {
      const turns = new Turns()
      const operator = await prepareTorOperator({
        cluster,
        settings: EMBEDDED_SETTINGS,
        log: SILENT,
        queue: turns.queue,
      })
      operator.start()
      try {
        await eventually('every daemon to be as planned', () => none(turns.unsettled(daemons)), 30_000)
      } finally {
        await operator.close()
      }
      return turns.writes
    }

    after(() => {
      cluster.close()
      store.close()
      rmSync(state, { recursive: true })
    })

    test('is read as it was written', () => {
      for (const one of recorded) assert.deepEqual(now(one), one.object)
      for (const { object } of recorded) if (object.kind === 'Pod') store.remove(refOf(object))
    })

    test('keeps its keys and addresses; nothing is made anew', async (t) => {
      t.diagnostic(`writes until all is as planned: ${await run()}`)
      for (const one of lasting) {
        const found = now(one)
        assert.equal(found.metadata.uid, one.object.metadata.uid, idOf(found))
        assert.deepEqual(found.metadata.ownerReferences, one.object.metadata.ownerReferences, idOf(found))
        const appliers = Object.keys(one.managers).filter((key) => key.startsWith('apply:'))
        assert.deepEqual(
          store.managers(refOf(found)).map((manager) => `apply:${manager}`),
          appliers,
          idOf(found),
        )
        if (found.kind === 'Secret') assert.deepEqual((found as Secret).data, (one.object as Secret).data)
        if (isOnionKey(found)) assert.deepEqual(found, one.object)
        if (found.kind === 'Deployment') assert.deepEqual(selectorOf(found), selectorOf(one.object))
        if (isDoor(found)) assert.deepEqual(complaints(found, one.object), [])
      }
      assert.deepEqual(
        UNIQUE.flatMap((kind) => store.list(kind))
          .map(idOf)
          .toSorted(),
        uniqueOf(lasting.map(({ object }) => object)),
      )
    })

    test('is not written again by the next start', async () => {
      const revision = store.revision
      assert.equal(await run(), 0)
      assert.equal(store.revision, revision)
    })
  })
}

describeWithKubernetes('objects of an earlier release in a cluster', () => {
  let access: KubernetesAccess
  let api: ApiClient

  before(async () => {
    access = await sharedKubernetes()
    await kubectl(['apply', '--server-side', '--force-conflicts', '-f', CRDS], access)
    const names = TOR_KINDS.map(({ plural }) => `crd/${plural}.tor.fr0st.dev`)
    await kubectl(['wait', '--for=condition=Established', ...names, '--timeout=60s'], access)
    api = connect(loadSettings({ kubeconfig: access.kubeconfig }), { component: 'test', version: '0.0.0' })
  })
  after(() => api?.close())

  for (const fixture of FIXTURES) {
    test(`are taken on as they are: ${fixture.version}`, async (t) => {
      const namespaces = new Map<string, string>()
      for (const { object } of fixture.recorded) {
        const name = object.metadata.namespace!
        if (!namespaces.has(name)) namespaces.set(name, await namespace(`upgrade-${name}`))
      }
      const placed = await place(api, fixture, namespaces)
      await using proxy = await FaultProxy.start(access, { name: `upgrade-${fixture.version}` })
      const options = { namespaces: [...namespaces.values()] }
      const look = ({ object }: Placed): Promise<Resource> => api.get(kindOf(object), object.metadata)
      {
        await using operator = await Operator.start(proxy.kubeconfig, options)
        await eventually('all to be taken on', async () => {
          const lines = await Promise.all(
            placed.map(async (one) => {
              const found = await look(one)
              if (isDoor(found)) return complaints(found, one.before)
              if (found.kind !== 'Deployment' || JSON.stringify(found.spec).includes(IMAGE)) return []
              return [`${idOf(found)} has the image of before`]
            }),
          )
          return none([...lines.flat(), ...operator.troubles()])
        })
        await quiet(proxy)
        assert.deepEqual(operator.lines('warn', 'error'), [])
      }
      t.diagnostic(`writes until all is as planned: ${written(proxy).length}`)

      for (const one of placed) {
        const found = await look(one)
        const { before: old, object } = one
        const what = idOf(found)
        assert.equal(found.metadata.uid, object.metadata.uid, what)
        assert.deepEqual(found.metadata.ownerReferences, object.metadata.ownerReferences, what)
        assert.deepEqual(managersOf(found).toSorted(), expectedManagers(object, found), what)
        if (found.kind === 'Secret') assert.deepEqual((found as Secret).data, (old as Secret).data, what)
        const mine = managersOf(object).includes(MANAGER) || isDoor(object)
        // Keys above all, and everything that users made.
        if (isOnionKey(found) || !mine) {
          assert.equal(found.metadata.resourceVersion, object.metadata.resourceVersion, what)
        }
      }

      const there = options.namespaces.flatMap((name) =>
        UNIQUE.map((kind) => api.list(kind, { namespace: name })),
      )
      const unique = (await Promise.all(there)).flatMap(({ items }) => items)
      assert.deepEqual(unique.map(idOf).toSorted(), uniqueOf(placed.map(({ object }) => object)))

      proxy.forget()
      await using again = await Operator.start(proxy.kubeconfig, options)
      await quiet(proxy)
      assert.deepEqual(again.troubles(), [])
      assert.deepEqual(written(proxy), [])
    })
  }
})

/** The same as before: another of ours beside it would keep fields for ever. The cluster itself has its say too. */
function expectedManagers(before: Resource, now: Resource): string[] {
  const cluster = managersOf(now).filter((manager) => manager.startsWith('kube-'))
  return [...managersOf(before).filter((manager) => !manager.startsWith('kube-')), ...cluster].toSorted()
}
