/**
 * What the operator and the agent of one tor daemon tell each other. Down: a topology (ConfigMap, one JSON
 * document `topology.json`) and keys (Secret, one file an onion). Up: a report, by long poll over HTTPS.
 * Plain types, no library: the agent's bundle holds nothing of Kubernetes.
 */

export const TOPOLOGY_VERSION = 1
export const REPORT_VERSION = 1
export const TOPOLOGY_FILE = 'topology.json'
/** Files of the keys Secret that secure the report; an onion's key stands in `<onion name>.key` (64 raw bytes, expanded ed25519). */
export const REPORT_CERTIFICATE_FILE = 'report.crt'
export const REPORT_KEY_FILE = 'report.pem'
export const REPORT_TOKEN_FILE = 'report.token'
/** File of the keys Secret with the bridges to use, one canonical line each, in canonical order; see `bridges/lines.ts`. */
export const BRIDGES_FILE = 'bridges.txt'
export const REPORT_PORT = 9081
export const METRICS_PORT = 9080

/** Where a backend may be dialled: an IP literal and a port. */
export interface Endpoint {
  host: string
  port: number
}

export interface OnionPort {
  virtualPort: number
  /** Dialled in turn at each connection; empty while the backend has no ready endpoint. */
  endpoints: Endpoint[]
}

export interface OnionPlan {
  /** Name of the OnionService, unique in the daemon's namespace; also names the key file. */
  name: string
  /** 56 characters, without `.onion`. */
  address: string
  /** Older onions are published first when many wait: milliseconds since the epoch. */
  since: number
  ports: OnionPort[]
  /**
   * Set: nobody else may connect. Public x25519 keys in base32 (52 characters, upper case), 1 to 320. An onion without
   * this is open to everybody.
   */
  clients?: string[]
  /**
   * Set: each connection to a backend begins with a PROXY protocol header (version 1), whose source address stands for
   * the visitor's circuit.
   */
  circuitIds?: true
  /** Set: visitors prove work while its introduction queue is long; tor's own rates where none are given. */
  pow?: { queueRate?: number; queueBurst?: number }
  /** How many streams one visitor's circuit may carry at a time, and whether one more ends the circuit. */
  streams?: { max: number; closeCircuit: boolean }
  /**
   * Grows each time that the onion is to be published anew though nothing of it changed. What an agent finds at its
   * start, or a smaller number, asks for nothing.
   */
  renewal?: number
}

/** An onion of another daemon, at which this one looks from outside. */
export interface WatchPlan {
  namespace: string
  /** Name of the OnionService. */
  name: string
  /** 56 characters, without `.onion`. */
  address: string
  port: number
  /** It is for clients with a key, which this daemon has not: its descriptor is all that can be found. */
  private?: true
  /** Set: a page is asked for, too. */
  http?: { path: string }
  /** Seconds between two looks while all is well. */
  every: number
}

export interface ProxyTarget {
  name: string
  /** With `.onion`. */
  onion: string
  port: number
  listenPort: number
  /** Set: the onion is private, and the file of this name in the keys holds our x25519 private key (32 bytes). */
  authFile?: string
}

export interface ProxyPlan {
  name: string
  targets: ProxyTarget[]
}

/** A port that tor opens to workloads; what is not an onion is refused unless `exit` says All. */
export interface AccessPort {
  port: number
  exit: 'Onions' | 'All'
}

export interface TorAccess {
  socks?: AccessPort
  /** HTTP CONNECT. */
  httpConnect?: AccessPort
}

export interface TorTopology {
  version: typeof TOPOLOGY_VERSION
  daemon: {
    name: string
    namespace: string
    logLevel: string
    /** Memory that the pod may use, in bytes: bounds tor's queues. */
    memoryLimit?: number
    /** torrc options by name; a value with several lines is the option once a line. */
    options: Record<string, string>
    /**
     * Set: the network is reached through the bridges of BRIDGES_FILE alone, never directly; without one the network
     * stays off.
     */
    bridges?: { transport: string }
    /** Series of onions have their addresses as a label only where this says so. */
    metrics?: { addresses?: boolean }
    /** Ports of the pod's address at which workloads speak to tor themselves. */
    access?: TorAccess
    /** Grow as `renewal` of an onion does: tor is to be started anew; to forget how long circuits took, and use new ones. */
    restarts?: number
    freshCircuits?: number
  }
  onions: OnionPlan[]
  proxies: ProxyPlan[]
  watch?: WatchPlan[]
}

export interface OnionState {
  name: string
  address: string
  /**
   * waiting: for its turn or its key; added: tor has it, no descriptor is acknowledged yet; published: at least
   * one upload acknowledged since it was added; failed: see reason.
   */
  state: 'waiting' | 'added' | 'published' | 'failed'
  reason?: string
  message?: string
  uploadsAsked: number
  uploadsAcknowledged: number
  /** Milliseconds since the epoch of the newest acknowledged upload. */
  lastUpload?: number
  /** Open connections and bytes since the agent's start. */
  connections: number
  /** Last backend that could not be dialled, until one could. */
  backendError?: string
}

export interface TargetState {
  proxy: string
  target: string
  /** undefined: not probed yet. */
  reachable?: boolean
  /** CamelCase, e.g. DescriptorNotFound. */
  reason?: string
  message?: string
  /** Milliseconds since the epoch of the last probe. */
  probed?: number
  listening: boolean
}

/** What was seen of an onion of another daemon. */
export interface WatchedState {
  namespace: string
  name: string
  address: string
  /** Undefined: not known yet. Only several failures in a row make it false. */
  reachable?: boolean
  /** Of the newest look; CamelCase where it failed, or where only the descriptor could be found. */
  reason?: string
  message?: string
  /** Milliseconds since the epoch of the newest look. */
  probed?: number
  /** Until the newest look that succeeded was through, in milliseconds. */
  latencyMs?: number
  /** In a row. */
  failures: number
  /** Of a look that failed: whether tor could build a circuit at that time. */
  circuits?: boolean
}

/** Whether tor listens on a port for workloads. */
export interface AccessState {
  name: 'socks' | 'httpConnect'
  listening: boolean
  /** Why it cannot; without it, it is only not yet so. */
  message?: string
}

/**
 * healthy: connected, or tor reached it and did not fail since; dead: tor failed to reach it; unknown: tor never tried.
 */
export type BridgeHealth = 'healthy' | 'dead' | 'unknown'

export interface BridgeState {
  /** 40 hexadecimal digits, upper case. */
  fingerprint: string
  state: BridgeHealth
  /** Milliseconds since the epoch at which it came into this state. */
  since: number
  /** CamelCase, why it is dead. */
  reason?: string
}

export interface TorState {
  /** e.g. 0.4.9.11 */
  version?: string
  pid?: number
  running: boolean
  bootstrapped: boolean
  /** 0 to 100 */
  progress: number
  /** tor's own words on what it waits for. */
  summary?: string
  /** Times that tor was started by this agent. */
  starts: number
  reason?: string
  message?: string
}

export interface TorReport {
  version: typeof REPORT_VERSION
  /** Grows by each change; a long poll `?after=N` answers once revision > N. */
  revision: number
  /** SHA-256 (hex) of the topology document in force; empty before the first. */
  applied: string
  /** Set while the newest document or key could not be used: what is wrong with it. */
  rejected?: string
  /** true: it was told to end, serves on until it is retired, and publishes nothing any more. */
  leaving?: boolean
  tor: TorState
  onions: OnionState[]
  targets: TargetState[]
  /** One each of the ports for workloads; absent where there are none. */
  access?: AccessState[]
  /** One each of the bridges in force, in the order of BRIDGES_FILE; absent where none are used. */
  bridges?: BridgeState[]
  /** One each of `watch`; absent where there is none. */
  watched?: WatchedState[]
}
