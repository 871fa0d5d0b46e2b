import type { ApiKind } from '../../src/cluster/api-kind.ts'
import { TOR_KINDS } from '../../src/tor/api/kinds.ts'
import { DaemonCondition, OnionCondition, ProxyCondition } from '../../src/tor/api/reasons.ts'
import { specSchema } from './schemas.ts'
import { type Schema, structuralSchema } from './structural.ts'

/** docs/reference.md: fields, columns and conditions of the kinds. */

/** Types of the conditions of a kind. */
export const CONDITIONS: Readonly<Record<string, readonly string[]>> = {
  OnionService: Object.values(OnionCondition),
  OnionProxy: Object.values(ProxyCondition),
  TorDaemon: Object.values(DaemonCondition),
}

/** What makes a condition True. */
const MEANINGS: Readonly<Record<string, string>> = {
  Ready: 'All other conditions are True.',
  KeyValid: 'The key is there, whole, and no other OnionService has it.',
  AuthConfigured:
    'Every client of a private onion has its key. Only there where `clientAuthorization` is set.',
  BackendReady: 'Every port has a backend that is ready.',
  Published: 'A directory of the Tor network acknowledged the descriptor.',
  Reachable:
    'The tor of another namespace came through to the backend; of a private onion: found its descriptor. Only False keeps `Ready` from being True.',
  PortsAccepted: 'Every target has its port in the daemon, and the Service is there.',
  TargetsReachable: 'The newest probe of every target came through Tor.',
  TorBootstrapped: 'tor is connected to the network.',
  TopologyApplied: 'All that is bound to the daemon is in force.',
  AccessReady: 'The daemon listens where `socks` and `httpConnect` say. Only there where one of them is set.',
  BridgesHealthy:
    'As many bridges as `minHealthy` asks for are not dead, and one is healthy. Only there with `bridges`.',
  VersionSupported: 'The version of tor has no known fault that matters here.',
}

export function reference(): string {
  const out = [
    '# Reference of the kinds',
    '',
    'Made by `npm run generate` from the schemas that decide what is accepted. `kubectl get postern` lists the objects of all kinds, `kubectl explain` has the fields. What each reason of a condition means, and what to do next, is in [troubleshooting](troubleshooting.md).',
  ]
  for (const kind of TOR_KINDS) out.push(...kindSection(kind))
  return `${out.join('\n')}\n`
}

function kindSection(kind: ApiKind): string[] {
  const types = CONDITIONS[kind.kind] ?? []
  const names = [kind.plural, ...(kind.shortNames ?? [])].map((name) => `\`${name}\``).join(', ')
  return [
    '',
    `## ${kind.kind}`,
    '',
    kind.description,
    '',
    `\`${kind.apiVersion}\`; ${names}.`,
    '',
    '| field | type | required | |',
    '| --- | --- | --- | --- |',
    ...rows(specSchema(kind), 'spec'),
    '',
    '| status | type | |',
    '| --- | --- | --- |',
    ...rows(structuralSchema(kind.status, 'status'), 'status').map((row) =>
      row.replace(/\| (yes)? *\| /, '| '),
    ),
    '',
    '| column | shows | |',
    '| --- | --- | --- |',
    ...kind.columns.map(
      ({ name, jsonPath, priority }) =>
        `| \`${name}\` | \`${jsonPath}\` | ${priority === 1 ? 'with `-o wide`' : ''} |`,
    ),
    '',
    '| condition | is True when |',
    '| --- | --- |',
    ...types.map((type) => `| \`${type}\` | ${MEANINGS[type] ?? missing(type)} |`),
  ]
}

function missing(type: string): never {
  throw new Error(`scripts/generate/reference.ts does not say when the condition ${type} is True`)
}

function rows(schema: Schema, path: string): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    // A field that can never be set is there for its error message only.
    if (field.not !== undefined) return []
    const here = `${path}.${name}`
    const inner = field.type === 'array' ? field.items : field
    const inside = field.type === 'array' ? `${here}[]` : here
    const required = schema.required?.includes(name) === true ? 'yes' : ''
    return [
      `| \`${here}\` | ${typeName(field)} | ${required} | ${field.description ?? ''} |`,
      ...rows(inner ?? {}, inside),
    ]
  })
}

function typeName(field: Schema): string {
  if (field.enum !== undefined) return field.enum.map((value) => `\`${String(value)}\``).join(', ')
  if (field.anyOf !== undefined) return field.anyOf.map(typeName).join(' or ')
  if (field.type === 'array') return `list of ${typeName(field.items ?? {})}`
  const { additionalProperties } = field
  if (typeof additionalProperties === 'object') {
    return additionalProperties.type === 'string' ? 'map of strings' : 'object, as in a pod'
  }
  return field.type ?? 'any'
}
