import type { Example } from './kind-examples.ts'

/** Good and bad specs of private and defended onions, see `kind-examples.ts`. */

const PORTS = { ports: [{ virtualPort: 80, backend: { service: 'web', port: 80 } }] }
const KEY = '3ZPNW7NB7RMCWAZYJTE7TOKGSVLGPTQ2TTTVXXYQKFE7NDEWUGHA'
const KEY_MESSAGE = 'must be an x25519 public key: 52 characters of base32, or descriptor:x25519:<base32>'
const ONE_MESSAGE = 'must have either publicKey, or generate: true'
const TARGET = {
  name: 'private',
  onion: 'libera75jm6of4wxpxt4aynol3xjmbtxgfyjpu34ss4d7r7q2v5zrpyd.onion',
  port: 80,
  listenPort: 8080,
}

const onion = (what: string, more: object, wrong?: Example['wrong']): Example => ({
  kind: 'OnionService',
  what,
  spec: { ...PORTS, ...more },
  ...(wrong === undefined ? {} : { wrong }),
})
const clients = (...all: object[]): object => ({ clientAuthorization: { clients: all } })
const proxy = (what: string, clientAuthSecret: object, wrong?: Example['wrong']): Example => ({
  kind: 'OnionProxy',
  what,
  spec: { targets: [{ ...TARGET, clientAuthSecret }] },
  ...(wrong === undefined ? {} : { wrong }),
})

export const PRIVATE_EXAMPLES: Example[] = [
  onion(
    'clients in every form',
    clients(
      { name: 'alice', publicKey: KEY },
      { name: 'bob', publicKey: `descriptor:x25519:${KEY.toLowerCase()}` },
      { name: 'carol', generate: true },
    ),
  ),
  onion(
    'as many clients as tor publishes',
    clients(...Array.from({ length: 320 }, (_, index) => ({ name: `client-${index}`, publicKey: KEY }))),
  ),
  onion(
    'a client too many',
    clients(...Array.from({ length: 321 }, (_, index) => ({ name: `client-${index}`, publicKey: KEY }))),
    { field: 'spec.clientAuthorization.clients', server: /at most 320 items/ },
  ),
  onion('no clients', clients(), { field: 'spec.clientAuthorization.clients', server: /at least 1 items/ }),
  onion('a client twice', clients({ name: 'alice', publicKey: KEY }, { name: 'alice', generate: true }), {
    field: 'spec.clientAuthorization.clients[1]',
    server: /Duplicate value/,
  }),
  onion('a client with both keys', clients({ name: 'alice', publicKey: KEY, generate: true }), {
    field: 'spec.clientAuthorization.clients[0]',
    says: ONE_MESSAGE,
  }),
  onion('a client without a key', clients({ name: 'alice' }), {
    field: 'spec.clientAuthorization.clients[0]',
    says: ONE_MESSAGE,
  }),
  onion('a key that is too short', clients({ name: 'alice', publicKey: KEY.slice(1) }), {
    field: 'spec.clientAuthorization.clients[0].publicKey',
    says: KEY_MESSAGE,
  }),
  onion('a private line as key', clients({ name: 'alice', publicKey: `a:descriptor:x25519:${KEY}` }), {
    field: 'spec.clientAuthorization.clients[0].publicKey',
    says: KEY_MESSAGE,
  }),
  onion('proof of work', { pow: {} }),
  onion('proof of work with rates', { pow: { enabled: true, queueRate: 10, queueBurst: 20 } }),
  onion(
    'proof of work with a rate while it is off',
    { pow: { enabled: false, queueRate: 10 } },
    {
      field: 'spec.pow',
      says: 'must not have a rate while enabled is false: remove it, or enable the defence',
    },
  ),
  onion(
    'a burst below the rate',
    { pow: { queueRate: 20, queueBurst: 10 } },
    {
      field: 'spec.pow',
      says: 'queueBurst must be at least queueRate',
    },
  ),
  onion(
    'a rate of 0',
    { pow: { queueRate: 0 } },
    {
      field: 'spec.pow.queueRate',
      server: /greater than or equal to 1/,
    },
  ),
  onion('streams', { streams: { max: 10, closeCircuit: true } }),
  onion(
    'streams without a number',
    { streams: { closeCircuit: true } },
    {
      field: 'spec.streams.max',
      server: /Required value/,
    },
  ),
  onion(
    'no streams at all',
    { streams: { max: 0 } },
    {
      field: 'spec.streams.max',
      server: /greater than or equal to 1/,
    },
  ),
  proxy('a key for a private onion', { name: 'web-client-alice' }),
  proxy('a key under another name', { name: 'mine', key: 'me.auth_private' }),
  proxy(
    'a key that is a path',
    { name: 'mine', key: '../x' },
    {
      field: 'spec.targets[0].clientAuthSecret.key',
      says: "must be letters, digits, '-', '_' and '.', as every key of a Secret",
    },
  ),
]
