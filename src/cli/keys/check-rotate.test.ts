import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SECRET, type Secret } from '../../cluster/kinds.ts'
import { ONION_SERVICE, type OnionService } from '../../tor/api/onion-service.ts'
import { generateOnionKey } from '../../tor/onion/key.ts'
import { keySecret } from '../../tor/operator/onion-keys.ts'
import { checkKeys } from './check.ts'
import {
  bytesOf,
  looked,
  onion,
  print,
  printed,
  say,
  secretOf,
  served,
  state,
  within,
} from './keys-fixture.ts'
import { overlapOf, rotateKey } from './rotate.ts'

test('check says of each key what is wrong with it', async () => {
  served('fine')
  onion('missing')
  onion('named', { privateKeySecret: { name: 'gone' } })
  served('private', { clientAuthorization: { clients: [{ name: 'bob', generate: true }] } })
  served('rotated', {
    formerKeys: [
      { name: 'fine-onion-key', until: '2020-01-01T00:00:00Z' },
      { name: 'lost', until: '2999-01-01T00:00:00Z' },
    ],
  })
  onion('twin', { privateKeySecret: { name: 'fine-onion-key' } })
  served('stale')
  within((store) => {
    const ref = {
      apiVersion: ONION_SERVICE.apiVersion,
      kind: 'OnionService',
      namespace: 'news',
      name: 'stale',
    }
    store.applyStatus({ ref, status: { hostname: `${generateOnionKey().address}.onion` } }, 'test')
  })
  onion('broken')
  within((store) => {
    const made = keySecret(
      { metadata: { namespace: 'news', name: 'broken' } } as OnionService,
      generateOnionKey(),
    )
    const data = { hs_ed25519_secret_key: Buffer.alloc(64, 255).toString('base64') }
    store.create({ ...made, data }, 'test')
  })
  const said = Object.fromEntries(
    (await looked()).map(({ onion: name, until, problems }) => [`${name} ${until ?? ''}`, problems.join()]),
  )
  const expected: [string, RegExp][] = [
    ['fine ', /news\/twin has the same key/],
    ['missing ', /missing-onion-key is not there/],
    ['named ', /gone is not there/],
    ['private ', /client bob: Secret private-client-bob is not there/],
    ['rotated ', /^$/],
    ['rotated 2020-01-01T00:00:00Z', /its time is over/],
    ['rotated 2999-01-01T00:00:00Z', /lost is not there/],
    ['twin ', /news\/fine has the same key/],
    ['stale ', /its status says/],
    ['broken ', /no expanded ed25519 secret key/],
  ]
  for (const [name, problem] of expected) assert.match(said[name] ?? 'nothing was said', problem, name)
  await assert.rejects(checkKeys([], { state, namespace: 'news' }, print), { code: 'KeysFaulty' })
  await assert.rejects(checkKeys(['fin'], { state, namespace: 'news' }, print), /did you mean 'fine'/)
  const secrets = within((store) => store.list(SECRET) as Secret[])
  for (const { data } of secrets)
    assert.ok(!printed.join('').includes(data!.hs_ed25519_secret_key!.slice(50, 80)))
})

test('rotated: a new key, the old one for a time, and what is to be committed', async () => {
  const before = served('web')
  const options = { state, namespace: 'news', overlap: '30d' }
  await rotateKey('web', { ...options, dryRun: true }, { say, print })
  const now = (): OnionService =>
    within((store) =>
      store.get({ ...ONION_SERVICE, namespace: 'news', name: 'web' } as never),
    ) as OnionService
  assert.equal(now().spec.privateKeySecret, undefined)
  await rotateKey('web', options, { say, print })
  const { privateKeySecret, formerKeys, ports } = now().spec
  assert.equal(ports.length, 1, 'the rest is as it was')
  assert.equal(formerKeys?.[0]?.name, 'web-onion-key')
  assert.ok(Math.abs(Date.parse(formerKeys[0].until) - Date.now() - 30 * 86_400_000) < 60_000)
  const next = bytesOf(secretOf(privateKeySecret!.name))
  assert.equal(next.length, 64)
  assert.notDeepEqual(next, Buffer.from(before.secret))
  assert.deepEqual(bytesOf(secretOf('web-onion-key')), Buffer.from(before.secret), 'the old one is kept')
  assert.match(printed.join('\n'), new RegExp(`name: ${privateKeySecret!.name}`))
})

test('rotated to a key of its own, or only printed', async () => {
  served('web')
  const vanity = generateOnionKey()
  within((store) =>
    store.create(
      {
        ...keySecret({ metadata: { namespace: 'news', name: 'x' } } as OnionService, vanity),
        metadata: { namespace: 'news', name: 'vanity' },
      },
      'test',
    ),
  )
  const options = { state, namespace: 'news', overlap: '12h', key: 'vanity' }
  await rotateKey('web', { ...options, print: true }, { say, print })
  const now = (): OnionService =>
    within((store) =>
      store.get({ ...ONION_SERVICE, namespace: 'news', name: 'web' } as never),
    ) as OnionService
  assert.equal(now().spec.privateKeySecret, undefined)
  await rotateKey('web', options, { say, print })
  assert.equal(now().spec.privateKeySecret?.name, 'vanity')
  await assert.rejects(rotateKey('web', options, { say, print }), /holds the key that is in use/)
  await assert.rejects(rotateKey('web', { ...options, key: 'none' }, { say, print }), { code: 'NotFound' })
  assert.throws(() => overlapOf('soon'), /--overlap "soon" is no time/)
  assert.throws(() => overlapOf('9999w'), /at most five years/)
})
