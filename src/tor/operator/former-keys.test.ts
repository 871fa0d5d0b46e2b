import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { generateOnionKey } from '../onion/key.ts'
import type { FormerKey, ObservedOnion } from './observed.ts'
import { keySecret, keyState } from './onion-keys.ts'
import { plan } from './plan.ts'
import { KEY, NOW, observed, observedOnion, onionService, reportOf, topology } from './plan-fixture.ts'

const HOUR = 3_600_000
const OLD = generateOnionKey()

const web = onionService('web', { formerKeys: [{ name: 'old', until: new Date(NOW + HOUR).toISOString() }] })

function former(more: Partial<FormerKey> = {}): FormerKey {
  const key = keyState(web, keySecret(web, OLD) as never)
  return { served: 'web.former-1', secret: 'old', until: NOW + HOUR, key, ...more }
}

const world = (more: Partial<FormerKey> = {}, onion: Partial<ObservedOnion> = {}) =>
  observed({ onions: [observedOnion(web, { former: [former(more)], ...onion })] })

const names = (result: ReturnType<typeof plan>): string[] =>
  (topology(result).onions as { name: string }[]).map(({ name }) => name)

const status = (result: ReturnType<typeof plan>): unknown =>
  result.status.find(({ ref }) => ref.name === 'web')?.status.former

describe('a former address', () => {
  it('is served beside the new one, with all that the onion is, and is seen in its status', () => {
    const input = world()
    input.view = {
      report: reportOf([{}, { name: 'web.former-1', address: OLD.address }]),
    } as never
    const result = plan(input, NOW)
    const [now, before] = topology(result).onions as { name: string; address: string; ports: unknown }[]
    assert.deepEqual([now!.name, now!.address], ['web', KEY.address])
    assert.deepEqual([before!.name, before!.address], ['web.former-1', OLD.address])
    assert.deepEqual(before!.ports, now!.ports)
    const keys = result.apply.find(({ kind }) => kind === 'Secret')?.data as Record<string, string>
    assert.equal(keys['web.former-1.key'], Buffer.from(OLD.secret).toString('base64'))
    assert.deepEqual(status(result), [{ name: 'old', hostname: `${OLD.address}.onion`, published: true }])
    assert.equal(result.again, HOUR)
  })

  it('ends when its time is over', () => {
    const result = plan(world({ until: NOW }), NOW)
    assert.deepEqual(names(result), ['web'])
    assert.equal(status(result), undefined)
  })

  it('goes on when the new key is not there yet', () => {
    const result = plan(world({}, { key: keyState(web, undefined) }), NOW)
    assert.deepEqual(names(result), ['web.former-1'])
  })

  it('yields to the onion that has the address now', () => {
    const result = plan(world({ holder: 'default/other' }), NOW)
    assert.deepEqual(names(result), ['web'])
    assert.deepEqual(status(result), [
      {
        name: 'old',
        hostname: `${OLD.address}.onion`,
        published: false,
        reason: 'OnionService default/other has this address now',
      },
    ])
  })

  it('says what is wrong with its key, and does not touch the new one', () => {
    const key = { state: 'bad', reason: 'KeySecretNotFound', message: 'Secret old is not there' } as const
    const result = plan(world({ key }), NOW)
    assert.deepEqual(names(result), ['web'])
    assert.deepEqual(status(result), [{ name: 'old', published: false, reason: 'Secret old is not there' }])
  })

  it('is shut for whom the onion is shut', () => {
    const clients = [{ name: 'a', state: 'bad', reason: 'x', message: 'y' }] as const
    assert.deepEqual(names(plan(world({}, { clients: [...clients] }), NOW)), [])
  })
})

describe('the Onion-Location of a site', () => {
  const location = (spec: object): Record<string, string> | undefined => {
    const onion = onionService('web', spec)
    const result = plan(observed({ onions: [observedOnion(onion)] }), NOW)
    return result.apply.find(({ metadata }) => metadata.name === 'web-location')?.data as never
  }

  it('sends each page to its twin, over the port that there is', () => {
    assert.equal(
      location({ onionLocation: {} })?.['nginx.conf'],
      `add_header Onion-Location http://${KEY.address}.onion$request_uri;\n`,
    )
    const ports = [{ virtualPort: 8443, backend: { service: 'web', port: 80 } }]
    assert.equal(
      location({ onionLocation: { scheme: 'https' }, ports })?.['onion-location'],
      `https://${KEY.address}.onion:8443`,
    )
    assert.equal(location({}), undefined)
  })

  it('goes when it is not asked for any more', () => {
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web-location', uid: 'u' } }
    const onions = [observedOnion(onionService('web'), { locations: [map as never] })]
    assert.deepEqual(
      plan(observed({ onions }), NOW).remove.map(({ name }) => name),
      ['web-location'],
    )
  })
})
