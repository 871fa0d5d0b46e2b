import { z } from 'zod'
import type { ApiKind } from '../../cluster/api-kind.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { codeOf } from '../../core/errors.ts'
import type { Kind, Resource } from '../../core/resource.ts'

/** Whether the kinds that are installed are those that this version was made for. */

interface Schema {
  type?: string
  properties?: Record<string, Schema>
  items?: Schema
  additionalProperties?: Schema | boolean
  'x-kubernetes-preserve-unknown-fields'?: boolean
}

interface CustomResourceDefinition extends Resource {
  spec?: {
    versions?: { name: string; served?: boolean; schema?: { openAPIV3Schema?: Schema } }[]
  }
}

export const CUSTOM_RESOURCE_DEFINITION: Kind<CustomResourceDefinition> = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  shortNames: ['crd'],
  namespaced: false,
}

const NAMED = 3

/**
 * What is wrong with the kinds, a sentence each; nothing when they are as they should be. A kind that we may not look
 * at (a namespaced installation has no right to) is not judged: its cache will say when it is not there.
 *
 * @throws ClusterError what the API server fails with otherwise
 */
export async function crdProblems(
  cluster: Pick<Cluster, 'get'>,
  kinds: readonly ApiKind[],
): Promise<string[]> {
  const problems: string[] = []
  for (const kind of kinds) {
    const [group = '', version = ''] = kind.apiVersion.split('/')
    const name = `${kind.plural}.${group}`
    let definition: CustomResourceDefinition | undefined
    try {
      definition = await cluster.get(CUSTOM_RESOURCE_DEFINITION, { name })
    } catch (error) {
      if (codeOf(error) === 'Forbidden') continue
      throw error
    }
    const problem =
      definition === undefined
        ? `the CustomResourceDefinition ${name} is not installed: apply those of this version`
        : faultOf(definition, kind, name, version)
    if (problem !== undefined) problems.push(problem)
  }
  return problems
}

function faultOf(
  definition: CustomResourceDefinition,
  kind: ApiKind,
  name: string,
  version: string,
): string | undefined {
  const served = definition.spec?.versions?.find((one) => one.name === version && one.served !== false)
  if (served === undefined) {
    return `the CustomResourceDefinition ${name} does not serve ${version}: apply that of this version`
  }
  const properties = served.schema?.openAPIV3Schema?.properties
  const missing = [...missingFields(schemaOf(kind.spec), properties?.spec, 'spec')]
  missing.push(...missingFields(schemaOf(kind.status), properties?.status, 'status'))
  if (missing.length === 0) return undefined
  const more = missing.length > NAMED ? ` and ${missing.length - NAMED} more` : ''
  return `the CustomResourceDefinition ${name} is older than this operator, it lacks ${missing.slice(0, NAMED).join(', ')}${more}: apply that of this version`
}

function schemaOf(schema: z.ZodType): Schema {
  return z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Schema
}

/** Paths of the fields that we know and the server would drop. */
function* missingFields(known: Schema, there: Schema | undefined, path: string): Generator<string> {
  if (there === undefined) {
    yield path
    return
  }
  if (there['x-kubernetes-preserve-unknown-fields'] === true) return
  for (const [name, field] of Object.entries(known.properties ?? {})) {
    // What is refused in every form is in no CRD.
    if ('not' in field) continue
    if (typeof there.additionalProperties === 'object') {
      yield* missingFields(field, there.additionalProperties, `${path}.${name}`)
    } else yield* missingFields(field, there.properties?.[name], `${path}.${name}`)
  }
  if (known.items !== undefined && there.items !== undefined) {
    yield* missingFields(known.items, there.items, `${path}[]`)
  }
}
