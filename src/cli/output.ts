import { stringify } from 'yaml'
import type { Resource } from '../core/resource.ts'

export type Format = 'table' | 'wide' | 'yaml' | 'json'

/** Objects as YAML or JSON: one as it is, several as a `List`, as kubectl prints them. */
export function document(objects: Resource[], single: boolean, format: 'yaml' | 'json'): string {
  const body = single ? objects[0] : { apiVersion: 'v1', kind: 'List', items: objects }
  return (format === 'json' ? JSON.stringify(body, null, 2) : toYaml(body)).trimEnd()
}

export function toYaml(value: unknown): string {
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false })
}

/** A Secret without what it holds: anybody may look over a shoulder, or paste an output into an issue. */
export function hideSecret(object: Resource): Resource {
  if (object.kind !== 'Secret') return object
  const hidden = { ...object }
  for (const member of ['data', 'stringData']) if (hidden[member] !== undefined) hidden[member] = '<hidden>'
  const { annotations } = object.metadata
  const last = 'kubectl.kubernetes.io/last-applied-configuration'
  if (annotations?.[last] !== undefined) {
    hidden.metadata = { ...object.metadata, annotations: { ...annotations, [last]: '<hidden>' } }
  }
  return hidden
}
