import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Secret } from '../../cluster/kinds.ts'
import { generateClientKey } from '../onion/client-key.ts'
import { clientSecret, clientStates, targetAuth } from './client-keys.ts'
import { plan } from './plan.ts'
import { condition, NOW, observed, observedOnion, onionService, topology } from './plan-fixture.ts'

const ADDRESS = `${'a'.repeat(55)}d`
const [ALICE, BOB] = [generateClientKey(), generateClientKey()]

type Client = { name: string; publicKey?: string; generate?: boolean }

/** An onion with these clients, of whom these have a Secret. */
function world(clients: Client[], secrets: Secret[] = []) {
  const object = onionService('web', { clientAuthorization: { clients } })
  const get = (key: string): Secret | undefined =>
    secrets.find(({ metadata }) => key === `default/${metadata.name}`)
  const states = clientStates(object, { get })!
  return observed({ onions: [observedOnion(object, { clients: states, clientSecrets: secrets })] })
}

const made = (client: string, key = ALICE): Secret => {
  const object = onionService('web')
  return clientSecret(object, client, key, ADDRESS) as Secret
}

describe('clients of a private onion', () => {
  it('gives the daemon the public keys of all that have one, each once, and tor no others', () => {
    const clients = [
      { name: 'b', publicKey: BOB.publicKey },
      { name: 'a', publicKey: ALICE.publicKey.toLowerCase() },
      { name: 'again', publicKey: `descriptor:x25519:${ALICE.publicKey}` },
    ]
    const result = plan(world(clients), NOW)
    const [served] = topology(result).onions as { clients: string[] }[]
    assert.deepEqual(served!.clients, [ALICE.publicKey, BOB.publicKey].sort())
    assert.equal(condition(result, 'web', 'AuthConfigured').reason, 'ClientsKnown')
  })

  it('makes a pair in both forms of tor, and publishes nothing before there is one', () => {
    const result = plan(world([{ name: 'alice', generate: true }]), NOW)
    const secret = result.create.find(({ metadata }) => metadata.name === 'web-client-alice')!
    assert.equal(secret.metadata.ownerReferences?.[0]?.uid, 'uid-web')
    const text = (name: string): string =>
      Buffer.from((secret.data as Record<string, string>)[name]!, 'base64').toString()
    assert.match(text('alice.auth'), /^descriptor:x25519:[A-Z2-7]{52}\n$/)
    assert.match(text('alice.auth_private'), /^[a-z2-7]{56}:descriptor:x25519:[A-Z2-7]{52}\n$/)
    assert.deepEqual(topology(result).onions, [])
    assert.equal(condition(result, 'web', 'AuthConfigured').status, 'Unknown')
  })

  it('serves the others when a key is none, and nobody when there is no other', () => {
    const bad = { name: 'bad', publicKey: 'A'.repeat(51) }
    const some = plan(world([bad, { name: 'bob', publicKey: BOB.publicKey }]), NOW)
    const [served] = topology(some).onions as { clients: string[] }[]
    assert.deepEqual(served!.clients, [BOB.publicKey])
    assert.match(condition(some, 'web', 'AuthConfigured').message, /client bad: publicKey/)
    const none = plan(world([bad]), NOW)
    assert.deepEqual(topology(none).onions, [])
    assert.equal(condition(none, 'web', 'Published').reason, 'NotPublished')
    assert.match(condition(none, 'web', 'Published').message, /AuthConfigured/)
  })

  it('takes the Secret of a former client away, and of no other', () => {
    const result = plan(world([{ name: 'alice', generate: true }], [made('alice'), made('eve', BOB)]), NOW)
    assert.deepEqual(
      result.remove.map(({ name }) => name),
      ['web-client-eve'],
    )
    const [served] = topology(result).onions as { clients: string[] }[]
    assert.deepEqual(served!.clients, [ALICE.publicKey])
  })

  it('keeps the pair and corrects its lines when the onion has another address', () => {
    const secret = made('alice')
    const result = plan(world([{ name: 'alice', generate: true }], [secret]), NOW)
    const change = result.apply.find(({ metadata }) => metadata.name === 'web-client-alice')!
    const data = change.data as Record<string, string>
    assert.equal(data['private-key'], secret.data?.['private-key'])
    assert.notEqual(data['alice.auth_private'], secret.data?.['alice.auth_private'])
  })
})

describe('our key for the private onion of a target', () => {
  const target = {
    name: 't',
    onion: `${ADDRESS}.onion`,
    port: 80,
    listenPort: 80,
    clientAuthSecret: { name: 's' },
  }
  const secret = (data: Record<string, Uint8Array | string>): Secret => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's', namespace: 'default' },
    data: Object.fromEntries(
      Object.entries(data).map(([name, value]) => [name, Buffer.from(value).toString('base64')]),
    ),
  })

  it('is taken from the Secret that was made for a client', () => {
    const auth = targetAuth(target, ADDRESS, made('alice'))
    assert.ok(auth.state === 'valid')
    assert.equal(auth.publicKey, ALICE.publicKey)
  })

  for (const [what, given, message] of [
    ['no Secret', undefined, /Secret s does not exist/],
    ['no such key', secret({ other: 'x' }), /has no private-key, it has other/],
    ['no key at all', secret({ 'private-key': 'hello' }), /is no x25519 key/],
    [
      'a key for another onion',
      secret({ 'private-key': `${'b'.repeat(55)}d:descriptor:x25519:AAAA` }),
      /another onion/,
    ],
  ] as const) {
    it(`is refused with the reason: ${what}`, () => {
      const auth = targetAuth(target, ADDRESS, given)
      assert.ok(auth.state === 'bad')
      assert.match(auth.message, message)
    })
  }
})
