import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ONION_PROXY, type OnionProxy } from '../api/onion-proxy.ts'
import { TOPOLOGY_VERSION } from '../contract.ts'
import { parseTopology } from '../topology-guard.ts'
import { decideProxies } from './proxy-status.ts'

const ADDRESS = 'libera75jm6of4wxpxt4aynol3xjmbtxgfyjpu34ss4d7r7q2v5zrpyd'
const ONION = `${ADDRESS}.onion`

test('an onion in any form that the kind takes reaches the daemon as an address that it takes', () => {
  for (const onion of [ONION, ADDRESS, ` ${ONION.toUpperCase()} `, `a_b.c.d.e.f.g.${ONION}`]) {
    const object: OnionProxy = {
      apiVersion: ONION_PROXY.apiVersion,
      kind: ONION_PROXY.kind,
      metadata: { name: 'p', namespace: 'default' },
      spec: { targets: [{ name: 't', onion, port: 80, listenPort: 1080 }] },
    }
    assert.deepEqual(ONION_PROXY.validate(object), [], onion)
    const [decision] = decideProxies({ namespace: 'default', name: 'tor' }, [{ object }])
    const topology = parseTopology(
      JSON.stringify({
        version: TOPOLOGY_VERSION,
        daemon: { name: 'tor', namespace: 'default', logLevel: 'notice', options: {} },
        onions: [],
        proxies: [decision!.plan],
      }),
    )
    assert.equal(topology.proxies[0]?.targets[0]?.onion, ONION)
  }
})
