import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SERVICE } from '../../src/cluster/kinds.ts'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'
import { onionService, startUp } from './up.ts'

const port = (virtualPort: number, more: object = {}) => ({
  virtualPort,
  backend: { service: 'web', port: 80, ...more },
})

test('each mistake in a manifest is one line, and harms nothing else', async () => {
  await using up = startUp({
    'deep.yaml': `a: ${'['.repeat(100_000)}`,
    'empty.yaml': onionService('empty', { ports: [] }),
    'kind.yaml': onionService('kind').replace('OnionService', 'OnionServce'),
    'other.yaml': onionService('other', { ports: [port(80, { namespace: 'x' })] }),
    'parse.yaml': 'kind: OnionService\nmetadata: a: b\n',
    'port.yaml': onionService('port', { ports: [port(70_000)] }),
    'service.yaml': 'apiVersion: v1\nkind: Service\nmetadata: {name: typed}\nspec: {ports: [{port: "80"}]}\n',
    'twice.yaml': onionService('twice', { ports: [port(80), port(80)] }),
    'z.yaml': onionService('good'),
  })
  const wrong = [
    'deep.yaml:1: is nested too deeply: flatten it; nothing in this file is changed until it can be read',
    'empty.yaml:1: OnionService default/empty: spec.ports: must have at least one port',
    'kind.yaml:1: kind: there is no kind OnionServce in tor.fr0st.dev/v1alpha1: did you mean kind: OnionService of apiVersion: tor.fr0st.dev/v1alpha1?',
    'other.yaml:1: OnionService default/other: spec.ports[0].backend.namespace: a backend in another namespace is not possible; publish the onion in the namespace of the Service',
    'parse.yaml:2: has a field inside a value: put the value in quotes, or on a line of its own; nothing in this file is changed until it can be read',
    'port.yaml:1: OnionService default/port: spec.ports[0].virtualPort: must be from 1 to 65535',
    'service.yaml:4: Service default/typed: spec.ports[0].port: must be a whole number from 1 to 65535',
    'twice.yaml:1: OnionService default/twice: spec.ports[1].virtualPort: port 80 is there already (ports[0]); each virtualPort may stand once',
  ]
  await up.until('the good onion to have an address', () => up.get(ONION_SERVICE, 'good')?.status?.hostname)
  await up.until('the last problem', () => up.output().includes(wrong.at(-1)!))
  const told = up
    .output()
    .split('\n')
    .filter((line) => line.startsWith('  ✗ '))
  assert.deepEqual(
    told,
    wrong.map((line) => `  ✗ ${line}`),
  )
  assert.equal(up.get(SERVICE, 'typed'), undefined)
  assert.equal(up.process.exitCode, null)
})
