import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ENDPOINT_SLICE, EVENT, SECRET } from '../../src/cluster/kinds.ts'
import type { Condition } from '../../src/core/conditions.ts'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'
import { TOR_DAEMON } from '../../src/tor/api/tor-daemon.ts'
import { ControlClient } from '../../src/tor/control/client.ts'
import { sharedTorNetwork } from '../../testbed/tor-network/shared.ts'
import { backend, onionService, startUp, torDaemon, type Up, webServer } from './up.ts'
import { visitUntil } from './visit.ts'

/** Onions as the tor of another namespace sees them, and what is done for one that it cannot reach. */

const network = await sharedTorNetwork()
const often = { intervalSeconds: 10 }

function reachable(up: Up, name: string): Condition | undefined {
  return up.condition(ONION_SERVICE, name, 'Reachable')
}

async function seen(up: Up, name: string, status: string, reason: string): Promise<Condition> {
  return up.until(
    `${name} to be seen as ${reason}`,
    () => {
      const condition = reachable(up, name)
      return condition?.status === status && condition.reason === reason && condition
    },
    150_000,
  )
}

function events(up: Up, name: string): string[] {
  return up
    .list(EVENT)
    .filter(({ regarding }) => (regarding as { name?: string }).name === name)
    .map(({ reason }) => String(reason))
    .filter((reason) => reason.startsWith('Healing'))
}

/** The control port of the tor that has an onion. */
async function torOf(up: Up, address: string): Promise<ControlClient> {
  for (const path of globSync('p/*/**/control', { cwd: up.state })) {
    const control = await ControlClient.connect({ path: join(up.state, path) }).catch(() => undefined)
    if (control === undefined) continue
    await control.authenticate()
    const detached = (await control.getInfo('onions/detached'))['onions/detached']
    if (detached?.includes(address)) return control
    await control.close()
  }
  throw new Error(`no tor has ${address}`)
}

test('another tor looks: reached, a backend that is away, a private onion; and who has nobody to look', async () => {
  using server = await webServer('looked at')
  await using up = startUp({
    'tor.yaml': torDaemon(network.options),
    'web.yaml': `${onionService('web', { probe: { ...often, http: { path: '/' } } })}---\n${backend('web', server.port)}`,
  })
  await up.published('web')
  await seen(up, 'web', 'Unknown', 'NoProber')
  assert.equal(up.get(ONION_SERVICE, 'web')?.status?.ready, true)

  up.write('watch.yaml', torDaemon(network.options, 'watch'))
  const private_ = {
    probe: often,
    clientAuthorization: { clients: [{ name: 'alice', generate: true }] },
  }
  up.write('private.yaml', onionService('private', private_, 'default', 'web'))
  up.write('quiet.yaml', onionService('quiet', { probe: { enabled: false } }, 'default', 'web'))
  await seen(up, 'web', 'True', 'Reached')
  await seen(up, 'private', 'True', 'DescriptorFound')
  await seen(up, 'quiet', 'Unknown', 'ProbeDisabled')
  assert.equal(up.get(ONION_SERVICE, 'web')?.status?.ready, true)

  const slice = up.get(ENDPOINT_SLICE, 'tor-metrics-postern', 'watch')
  const port = slice?.ports?.find(({ name }) => name === 'metrics')?.port
  const text = await (await fetch(`http://${slice?.endpoints?.[0]?.addresses[0]}:${port}/metrics`)).text()
  assert.match(text, /^tor_agent_onion_reachable\{onion_namespace="default",onion="web"\} 1$/m)
  assert.match(text, /^tor_agent_onion_latency_seconds\{onion_namespace="default",onion="web"\} \d/m)
  assert.doesNotMatch(text, /[a-z2-7]{55}d|quiet/)

  // Away, and nobody told Kubernetes: tor is not to blame.
  const { port: closed } = server
  server[Symbol.dispose]()
  await seen(up, 'web', 'False', 'BackendUnreachable')
  assert.equal(up.condition(ONION_SERVICE, 'web', 'Ready')?.status, 'False')
  assert.deepEqual([up.get(ONION_SERVICE, 'web')?.status?.healing, events(up, 'web')], [undefined, []])
  using _again = await webServer('back', closed)
  await seen(up, 'web', 'True', 'Reached')
})

test('an onion that its tor serves wrongly is published anew, once, and found again', async () => {
  using server = await webServer('healed')
  await using up = startUp({
    'tor.yaml': torDaemon(network.options),
    'watch.yaml': torDaemon(network.options, 'watch'),
    'web.yaml': `${onionService('web', { probe: often })}---\n${backend('web', server.port)}`,
  })
  const host = await up.published('web')
  await seen(up, 'web', 'True', 'Reached')
  // Behind its agent's back: tor has the onion as the agent's look at the list shows, but with another port.
  const address = host.slice(0, -'.onion'.length)
  {
    await using control = await torOf(up, address)
    const file = Buffer.from(up.get(SECRET, 'web-onion-key')!.data!.hs_ed25519_secret_key!, 'base64')
    await control.delOnion(address)
    await control.addOnion({
      key: `ED25519-V3:${file.subarray(-64).toString('base64')}`,
      ports: [{ virtualPort: 81, target: '127.0.0.1:9' }],
      flags: ['Detach', 'DiscardPK'],
    })
  }
  await up.until('a step', () => events(up, 'web').length > 0, 150_000)
  assert.deepEqual(events(up, 'web'), ['HealingRepublished'])
  await seen(up, 'web', 'True', 'Reached')
  await visitUntil(network.socksPort, host, 'healed')
  const healing = await up.until('the ladder to begin anew', () => {
    const { healing } = up.get(ONION_SERVICE, 'web')!.status!
    return healing?.attempts === 0 && healing
  })
  assert.equal(healing.renewal, 1)
  assert.equal(healing.republished?.length, 1)
  assert.deepEqual(events(up, 'web'), ['HealingRepublished'])
  assert.equal(up.get(TOR_DAEMON, 'tor')?.status?.healing, undefined)
})
