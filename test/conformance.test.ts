import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { conformance } from '../src/cluster/conformance.ts'
import { EmbeddedCluster } from '../src/cluster/embedded/cluster.ts'
import { Store } from '../src/cluster/embedded/store.ts'
import { KubernetesCluster } from '../src/cluster/kubernetes/cluster.ts'
import { connect, loadSettings } from '../src/cluster/kubernetes/connect.ts'
import { SILENT } from '../src/core/logger.ts'
import type { Kind } from '../src/core/resource.ts'
import { kubectl } from '../testbed/kubernetes/kubectl.ts'
import { describeWithKubernetes } from '../testbed/kubernetes/left-out.ts'
import { namespace, sharedKubernetes } from '../testbed/kubernetes/shared.ts'

/** One contract, two clusters: whoever keeps it may stand under the controllers. */

const DOOR: Kind = { apiVersion: 'test.postern.dev/v1', kind: 'Door', plural: 'doors', namespaced: true }

/** A kind whose spec and status take any field; conditions merge by type, as those of every kind of ours. */
const DOOR_CRD = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'doors.test.postern.dev' },
  spec: {
    group: 'test.postern.dev',
    scope: 'Namespaced',
    names: { kind: 'Door', plural: 'doors', singular: 'door', listKind: 'DoorList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
              status: {
                type: 'object',
                'x-kubernetes-preserve-unknown-fields': true,
                properties: {
                  conditions: {
                    type: 'array',
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['type'],
                    items: {
                      type: 'object',
                      required: ['type'],
                      properties: { type: { type: 'string' } },
                      'x-kubernetes-preserve-unknown-fields': true,
                    },
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
}

conformance('the embedded cluster', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-cluster-'))
  const store = new Store(folder)
  const cluster = new EmbeddedCluster(store, [DOOR])
  return {
    cluster,
    kind: DOOR,
    namespace: 'space',
    async close() {
      cluster.close()
      store.close()
      rmSync(folder, { recursive: true })
    },
  }
})

describeWithKubernetes('with an API server', () => {
  const shared = sharedKubernetes()
  conformance('a Kubernetes API server', async () => {
    const access = await shared
    const options = { kubeconfig: access.kubeconfig }
    await kubectl(['apply', '--server-side', '-f', '-'], { ...options, input: JSON.stringify(DOOR_CRD) })
    await kubectl(['wait', '--for=condition=Established', 'crd/doors.test.postern.dev'], options)
    const api = connect(loadSettings(options), { component: 'test', version: '0' })
    const cluster = new KubernetesCluster(api, { log: SILENT, kinds: [DOOR] })
    return {
      cluster,
      kind: DOOR,
      namespace: await namespace('conformance'),
      async close() {
        await cluster.close()
        await api.close()
      },
    }
  })
})
