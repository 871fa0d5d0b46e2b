import assert from 'node:assert/strict'
import { SocksError } from '../../src/relay/socks-error.ts'
import * as site from './site.ts'
import { curl, LAB_PAGE, type Steps } from './steps.ts'

const ENDPOINT = 'http://newsroom.home.svc:8080/'

function proxyObject(onion: string, more: object = {}): object {
  return {
    apiVersion: 'tor.fr0st.dev/v1alpha1',
    kind: 'OnionProxy',
    metadata: { namespace: 'home', name: 'newsroom' },
    spec: { targets: [{ name: 'web', onion, port: 80, listenPort: 8080, ...more }] },
  }
}

/** An onion in `lab` for those who have a key, of docs/private-onion.md; `home` gets one. */
export function privateSteps({ step, stage }: Steps): void {
  let onion: string

  step('publishes an onion that strangers cannot enter', async () => {
    const open = site.onionObject('lab', 'newsroom', 'my-service', 8443) as { spec: object }
    const clientAuthorization = { clients: [{ name: 'bob', generate: true }] }
    await stage().apply({ ...open, spec: { ...open.spec, clientAuthorization, pow: { enabled: true } } })
    const told = await site.ready(stage(), 'onionservice', 'lab', 'newsroom')
    assert.equal(site.conditionOf(told, 'AuthConfigured')?.status, 'True')
    onion = (told.status as { hostname: string }).hostname
    // Of the network's own client, which reaches every other onion.
    await assert.rejects(site.visit(stage(), onion), (error) => error instanceof SocksError)

    await stage().apply(proxyObject(onion))
    await site.until('the missing key to be told', async () => {
      const proxy = await stage().get('onionproxy', 'newsroom', 'home')
      const condition = site.conditionOf(proxy, 'TargetsReachable')
      if (condition?.reason === 'ClientAuthMissing') return true
      throw new Error(JSON.stringify(proxy.status))
    })
    await assert.rejects(curl(stage(), 'home', 'client', ENDPOINT), /curl: \(\d+\)/)
  })

  step('lets a pod of another namespace in that has the key', async () => {
    const made = await stage().get('secret', 'newsroom-client-bob', 'lab')
    const { hostname, 'private-key': key } = (made as unknown as { data: Record<string, string> }).data
    assert.equal(Buffer.from(hostname!, 'base64').toString().trim(), onion)
    // Whose hands it goes through is its owner's business: no operator copies it.
    const metadata = { namespace: 'home', name: 'newsroom-key' }
    await stage().apply(
      { apiVersion: 'v1', kind: 'Secret', metadata, data: { 'private-key': key } },
      proxyObject(onion, { clientAuthSecret: { name: 'newsroom-key' } }),
    )
    await site.ready(stage(), 'onionproxy', 'home', 'newsroom')
    const seen = await site.until('the page by the proxy', () => curl(stage(), 'home', 'client', ENDPOINT))
    assert.match(seen, new RegExp(LAB_PAGE))
    await assert.rejects(site.visit(stage(), onion), (error) => error instanceof SocksError)
  })
}
