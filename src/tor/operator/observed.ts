import type { ConfigMap, Pod, Secret, Service } from '../../cluster/kinds.ts'
import type { ReportView } from '../../cluster/reports.ts'
import type { Failure } from '../../controller/applier.ts'
import type { ReportIdentity } from '../../controller/report-identity.ts'
import type { Resource } from '../../core/resource.ts'
import type { OnionProxy } from '../api/onion-proxy.ts'
import type { OnionService } from '../api/onion-service.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import type { TorReport, WatchedState, WatchPlan } from '../contract.ts'
import type { ClientKey } from '../onion/client-key.ts'
import type { OnionKey } from '../onion/key.ts'
import type { Backend } from './backend.ts'
import type { ObservedBridges } from './bridge-seed.ts'
import type { ClientState, TargetAuth } from './client-keys.ts'
import type { DaemonId } from './names.ts'

/** How the operator was told to behave: where the two clusters differ by nature. */
export interface TorSettings {
  /** Whether a backend may stand on a loopback address: yes on one machine, never in a cluster. */
  loopbackBackends: boolean
  /** Whether workloads reach a proxy by its Service's name, or by the daemon's address. */
  serviceDns: boolean
  /** Of the daemons' pods. */
  image: string
  imagePullPolicy?: string
  /**
   * Seconds that a pod which was told to end goes on serving while its successor publishes; 0 where none starts
   * beside it.
   */
  lingerSeconds: number
  /** Whether a change of what is mounted reaches a pod only once its kubelet looks. */
  volumesLag: boolean
  /** Whether a daemon gets a ServiceAccount and a PodDisruptionBudget: one machine has no use for them. */
  companions: boolean
  /** Whether a daemon gets a NetworkPolicy. */
  networkPolicies: boolean
  /** Where the operator runs: only from there agents are asked for their report. Undefined: from anywhere. */
  operatorNamespace?: string
}

/** The key of an onion, as it was found. */
export type KeyState =
  /** Its Secret was not looked at yet. */
  | { state: 'pending' }
  /** `address` without `.onion`. The key itself stays in its Secret alone: there may be many thousands. */
  | { state: 'valid'; address: string; secret: Secret }
  | { state: 'generate' }
  | { state: 'bad'; reason: string; message: string; hostname?: string }

/** A former address of an onion. */
export interface FormerKey {
  /** As the daemon knows it: unique among its onions. */
  served: string
  secret: string
  /** Milliseconds since the epoch. */
  until: number
  key: KeyState
  /** The OnionService that has this address now, `namespace/name`. */
  holder?: string
}

export interface ObservedOnion {
  object: OnionService
  key: KeyState
  /** The older OnionService that has the same key, `namespace/name`. */
  rival?: string
  /** One a port of the spec, in its order. */
  backends: Backend[]
  /** One a client of the spec; absent where everybody may connect. */
  clients?: ClientState[]
  /** Keys of former addresses, in the order of the spec. */
  former?: FormerKey[]
  /** ConfigMaps that were made for its site on the open web. */
  locations?: ConfigMap[]
  /** Secrets that were made for its clients, those of former ones too. */
  clientSecrets?: Secret[]
}

export interface ObservedProxy {
  object: OnionProxy
  /** Service of the proxy's name, whoever owns it. */
  service?: Service
  /** By target: the key by which its onion is opened, where the target names one. */
  auths?: ReadonlyMap<string, TargetAuth>
}

/** The daemon of another namespace that looks at the onions of this one. */
export interface ObservedProber {
  /** `namespace/name` */
  daemon: string
  /** It does not report, or is not connected, now. */
  silent: boolean
  /** What it sees, by the onion's name. */
  watched: ReadonlyMap<string, WatchedState>
  /** Whether it reaches anything, of whomever. */
  reaches: boolean
  /** Of how many namespaces the onions are that it does not reach. */
  places: number
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
  /** Where the daemon has bridges. */
  bridges?: ObservedBridges
  /** Objects that the cluster did not take at the last run. */
  refused: readonly Failure[]
  /** Services that were made for proxies of this daemon, and for workloads that speak to tor themselves. */
  services: Service[]
  /** Claims that were made for it. */
  claims?: Resource[]
  /** The pod that speaks for the daemon. */
  pod?: Pod
  /** All of its pods, those that are ending too. */
  pods: Pod[]
  view?: ReportView<TorReport>
  /** Who looks at its onions from outside; absent where nobody can. */
  prober?: ObservedProber
  /** Onions of other daemons at which this one is to look. */
  watch?: WatchPlan[]
  /** Randomness, passed in so that planning stays pure. */
  make: { onionKey: () => OnionKey; clientKey: () => ClientKey; reportIdentity: () => ReportIdentity }
}
