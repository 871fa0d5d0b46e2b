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
  }
  onions: OnionPlan[]
  proxies: ProxyPlan[]
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
}
