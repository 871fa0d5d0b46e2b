import assert from 'node:assert/strict'
import type { Secret } from '../../cluster/kinds.ts'
import type { Plan } from '../../controller/plan.ts'
import { type Condition, findCondition } from '../../core/conditions.ts'
import type { OnionProxy } from '../api/onion-proxy.ts'
import type { OnionService } from '../api/onion-service.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import { type OnionState, REPORT_VERSION, type TargetState, type TorReport } from '../contract.ts'
import { generateClientKey } from '../onion/client-key.ts'
import { generateOnionKey, type OnionKey } from '../onion/key.ts'
import type { Observed, ObservedOnion, TorSettings } from './observed.ts'
import { keySecret, keyState } from './onion-keys.ts'

/** A world for the planner's tests. */

export const NOW: number = Date.parse('2026-01-02T12:00:00Z')
export const KEY: OnionKey = generateOnionKey((n) => new Uint8Array(n).fill(7))
export const ONION: string = 'libera75jm6of4wxpxt4aynol3xjmbtxgfyjpu34ss4d7r7q2v5zrpyd.onion'

export function onionService(name: string, spec: Partial<OnionService['spec']> = {}): OnionService {
  return {
    apiVersion: 'tor.fr0st.dev/v1alpha1',
    kind: 'OnionService',
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { ports: [{ virtualPort: 80, backend: { service: 'web', port: 80 } }], ...spec },
  }
}

export function secretOf(onion: OnionService): Secret {
  return keySecret(onion, KEY) as Secret
}

export function observedOnion(object: OnionService, more: Partial<ObservedOnion> = {}): ObservedOnion {
  return {
    object,
    key: keyState(object, secretOf(object)),
    backends: [{ ok: true, endpoints: [{ host: '127.0.0.1', port: 8080 }] }],
    ...more,
  }
}

export function proxy(name: string, listenPorts: number[], created = '2026-01-01T00:00:00Z'): OnionProxy {
  return {
    apiVersion: 'tor.fr0st.dev/v1alpha1',
    kind: 'OnionProxy',
    metadata: { name, namespace: 'default', uid: `uid-${name}`, creationTimestamp: created },
    spec: {
      targets: listenPorts.map((port) => ({ name: `t${port}`, onion: ONION, port, listenPort: port })),
    },
  }
}

export const SETTINGS: TorSettings = {
  loopbackBackends: true,
  serviceDns: true,
  image: 'postern-tor:1',
  lingerSeconds: 0,
  volumesLag: false,
  companions: false,
  networkPolicies: false,
}

export const DAEMON: TorDaemon = {
  apiVersion: 'tor.fr0st.dev/v1alpha1',
  kind: 'TorDaemon',
  metadata: { name: 'tor', namespace: 'default', uid: 'uid-tor', generation: 1 },
}

export function reportOf(onions: Partial<OnionState>[], targets: TargetState[] = []): TorReport {
  return {
    version: REPORT_VERSION,
    revision: 1,
    applied: '',
    tor: { running: true, bootstrapped: true, progress: 100, starts: 1, version: '0.4.9.11' },
    onions: onions.map((onion) => ({
      name: 'web',
      address: KEY.address,
      state: 'published',
      uploadsAsked: 1,
      uploadsAcknowledged: 1,
      connections: 0,
      ...onion,
    })),
    targets,
  }
}

export function observed(more: Partial<Observed>): Observed {
  return {
    daemon: { namespace: 'default', name: 'tor' },
    settings: SETTINGS,
    object: DAEMON,
    onions: [],
    proxies: [],
    services: [],
    pods: [],
    refused: [],
    make: {
      onionKey: () => KEY,
      clientKey: generateClientKey,
      reportIdentity: () => ({ certificate: 'C', privateKey: 'K', token: 'T' }),
    },
    ...more,
  }
}

export function condition(result: Plan, name: string, type: string): Condition {
  const patch = result.status.find((one) => one.ref.name === name)
  const found = findCondition(patch?.status.conditions as Condition[], type)
  assert.ok(found, `no condition ${type} on ${name}: ${JSON.stringify(patch)}`)
  return found
}

export const kinds = (result: Plan): string[] => result.apply.map((one) => `${one.kind}/${one.metadata.name}`)

export function topology(result: Plan): {
  onions: unknown[]
  proxies: { name: string; targets: { listenPort: number }[] }[]
} {
  const map = result.apply.find((one) => one.kind === 'ConfigMap')!
  return JSON.parse((map.data as Record<string, string>)['topology.json']!)
}
