import type { Pod, Secret, Service } from '../../cluster/kinds.ts'
import type { ReportView } from '../../cluster/reports.ts'
import type { ReportIdentity } from '../../controller/report-identity.ts'
import type { OnionProxy } from '../api/onion-proxy.ts'
import type { OnionService } from '../api/onion-service.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import type { TorReport } from '../contract.ts'
import type { OnionKey } from '../onion/key.ts'
import type { Backend } from './backend.ts'
import type { DaemonId } from './names.ts'

/** How the operator was told to behave: where the two clusters differ by nature. */
export interface TorSettings {
  /** Whether a backend may stand on a loopback address: yes on one machine, never in a cluster. */
  loopbackBackends: boolean
  /** Whether workloads reach a proxy by its Service's name, or by the daemon's address. */
  serviceDns: boolean
}

/** The key of an onion, as it was found. */
export type KeyState =
  | { state: 'valid'; key: OnionKey; secret: Secret }
  | { state: 'generate' }
  | { state: 'bad'; reason: string; message: string; hostname?: string }

export interface ObservedOnion {
  object: OnionService
  key: KeyState
  /** The older OnionService that has the same key, `namespace/name`. */
  rival?: string
  /** One a port of the spec, in its order. */
  backends: Backend[]
}

export interface ObservedProxy {
  object: OnionProxy
  /** Service of the proxy's name, whoever owns it. */
  service?: Service
}

/** All that the state of one daemon follows from. */
export interface Observed {
  daemon: DaemonId
  settings: TorSettings
  object?: TorDaemon
  /** By age. */
  onions: ObservedOnion[]
  /** By age, then UID: the order in which they get their ports. */
  proxies: ObservedProxy[]
  keys?: Secret
  /** Services that were made for proxies of this daemon. */
  services: Service[]
  pod?: Pod
  view?: ReportView<TorReport>
  /** Randomness, passed in so that planning stays pure. */
  make: { onionKey: () => OnionKey; reportIdentity: () => ReportIdentity }
}
