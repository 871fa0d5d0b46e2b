import type { ApiKind } from '../../src/cluster/api-kind.ts'
import { CEL_RULES } from '../../src/cluster/cel.ts'
import { nameRules, type Schema, structuralSchema } from './structural.ts'

/** `kubectl get postern` lists the objects of every kind of ours. */
const CATEGORY = 'postern'

/** The CustomResourceDefinition of a kind. */
export function customResourceDefinition(kind: ApiKind): Record<string, unknown> {
  const [group, version] = kind.apiVersion.split('/') as [string, string]
  const singular = kind.kind.toLowerCase()
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.plural}.${group}` },
    spec: {
      group,
      scope: kind.namespaced ? 'Namespaced' : 'Cluster',
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular,
        shortNames: kind.shortNames ?? [],
        categories: [CATEGORY],
      },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: kind.columns.map(({ name, type, jsonPath, priority }) => ({
            name,
            type,
            jsonPath,
            ...(priority === undefined ? {} : { priority }),
          })),
          schema: { openAPIV3Schema: documentSchema(kind) },
        },
      ],
    },
  }
}

function documentSchema(kind: ApiKind): Schema {
  return {
    description: kind.description,
    type: 'object',
    ...(kind.specOptional === true ? {} : { required: ['spec'] }),
    ...(kind.name === undefined ? {} : { [CEL_RULES]: nameRules(kind.name) }),
    properties: {
      apiVersion: { description: 'Version of the schema of this object.', type: 'string' },
      kind: { description: 'Kind of this object.', type: 'string' },
      metadata: {
        type: 'object',
        ...(kind.name === undefined ? {} : { properties: { name: { type: 'string' } } }),
      },
      spec: { ...structuralSchema(kind.spec, 'spec'), description: 'What is wanted.' },
      status: { ...structuralSchema(kind.status, 'status'), description: 'What is.' },
    },
  }
}
