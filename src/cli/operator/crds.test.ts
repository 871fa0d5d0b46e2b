import assert from 'node:assert/strict'
import { test } from 'node:test'
import { customResourceDefinition } from '../../../scripts/generate/crd.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { ClusterError } from '../../cluster/errors.ts'
import type { Resource } from '../../core/resource.ts'
import { TOR_KINDS } from '../../tor/api/kinds.ts'
import { crdProblems } from './crds.ts'

type Json = Record<string, unknown>

/** A cluster with the CRDs of this version, changed. */
function cluster(change: (definition: Json) => Json | undefined = (same) => same): Pick<Cluster, 'get'> {
  return {
    get: async <T extends Resource>(_kind: unknown, { name }: { name: string }) => {
      const kind = TOR_KINDS.find((one) => name === `${one.plural}.${one.apiVersion.split('/')[0]}`)
      assert.ok(kind, name)
      return change(JSON.parse(JSON.stringify(customResourceDefinition(kind)))) as unknown as T | undefined
    },
  }
}

/** Walks to a member, and applies a change to it. */
function at(definition: Json, path: (string | number)[], change: (here: Json) => void): Json {
  let here: Json = definition
  for (const step of path) here = here[step] as Json
  change(here)
  return definition
}

const PROPERTIES = ['spec', 'versions', 0, 'schema', 'openAPIV3Schema', 'properties']
const onlyOnions =
  (change: (definition: Json) => Json | undefined) =>
  (definition: Json): Json | undefined =>
    (definition.metadata as Json).name === 'onionservices.tor.fr0st.dev' ? change(definition) : definition

test('the kinds that this version generates are those that it asks for', async () => {
  assert.deepEqual(await crdProblems(cluster(), TOR_KINDS), [])
})

test('a kind that is missing, not served or older is named, with what it lacks', async () => {
  const crd = 'the CustomResourceDefinition onionservices.tor.fr0st.dev'
  const cases: [(definition: Json) => Json | undefined, string][] = [
    [() => undefined, `${crd} is not installed: apply those of this version`],
    [
      (d) =>
        at(d, ['spec', 'versions', 0], (version) => {
          version.name = 'v1alpha0'
        }),
      `${crd} does not serve v1alpha1: apply that of this version`,
    ],
    [
      (d) =>
        at(d, ['spec', 'versions', 0], (version) => {
          version.served = false
        }),
      `${crd} does not serve v1alpha1: apply that of this version`,
    ],
    [
      (d) => at(d, [...PROPERTIES, 'spec', 'properties'], (fields) => delete fields.privateKeySecret),
      `${crd} is older than this operator, it lacks spec.privateKeySecret: apply that of this version`,
    ],
    [
      (d) =>
        at(d, [...PROPERTIES, 'spec', 'properties', 'ports', 'items', 'properties'], (fields) => {
          delete fields.backend
        }),
      `${crd} is older than this operator, it lacks spec.ports[].backend: apply that of this version`,
    ],
    [
      (d) => at(d, PROPERTIES, (fields) => delete fields.status),
      `${crd} is older than this operator, it lacks status: apply that of this version`,
    ],
  ]
  for (const [change, message] of cases) {
    assert.deepEqual(await crdProblems(cluster(onlyOnions(change)), TOR_KINDS), [message])
  }
})

test('a newer kind is fine, and so is one that we may not look at', async () => {
  const newer = cluster((d) =>
    at(d, [...PROPERTIES, 'spec', 'properties'], (fields) => {
      fields.future = { type: 'string' }
    }),
  )
  assert.deepEqual(await crdProblems(newer, TOR_KINDS), [])
  const failing = (code: 'Forbidden' | 'Unavailable'): Pick<Cluster, 'get'> => ({
    get: () => Promise.reject(new ClusterError(code, 'no')),
  })
  assert.deepEqual(await crdProblems(failing('Forbidden'), TOR_KINDS), [])
  await assert.rejects(crdProblems(failing('Unavailable'), TOR_KINDS), { code: 'Unavailable' })
})
