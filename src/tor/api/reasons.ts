/** Condition types and reasons of the tor kinds: what programs may rely on. */

export const OnionCondition = {
  Ready: 'Ready',
  KeyValid: 'KeyValid',
  AuthConfigured: 'AuthConfigured',
  BackendReady: 'BackendReady',
  Published: 'Published',
  Reachable: 'Reachable',
} as const

export const ProxyCondition = {
  Ready: 'Ready',
  PortsAccepted: 'PortsAccepted',
  TargetsReachable: 'TargetsReachable',
} as const

export const DaemonCondition = {
  Ready: 'Ready',
  TorBootstrapped: 'TorBootstrapped',
  BridgesHealthy: 'BridgesHealthy',
  TopologyApplied: 'TopologyApplied',
  VersionSupported: 'VersionSupported',
  AccessReady: 'AccessReady',
} as const

export const Reason = {
  /** Nothing is known yet. */
  Pending: 'Pending',
  /** All is as it should be. */
  Ready: 'Ready',

  DaemonNotFound: 'DaemonNotFound',
  AgentSilent: 'AgentSilent',
  /** An object of a name that is needed is there already, and is somebody else's. */
  NameTaken: 'NameTaken',
  /** The cluster does not take an object that is needed: a quota, an admission rule, a missing permission. */
  ObjectRefused: 'ObjectRefused',

  KeyLoaded: 'KeyLoaded',
  KeySecretNotFound: 'KeySecretNotFound',
  /** The operator may not read the Secret, or cannot now. */
  KeySecretUnreadable: 'KeySecretUnreadable',
  DuplicateKey: 'DuplicateKey',

  ClientsKnown: 'ClientsKnown',
  ClientKeyInvalid: 'ClientKeyInvalid',
  ClientSecretNotFound: 'ClientSecretNotFound',

  EndpointsReady: 'EndpointsReady',
  ServiceNotFound: 'ServiceNotFound',
  PortNotFound: 'PortNotFound',
  NoReadyEndpoints: 'NoReadyEndpoints',
  AddressRefused: 'AddressRefused',
  ExternalNameRefused: 'ExternalNameRefused',
  BackendUnreachable: 'BackendUnreachable',

  DescriptorUploaded: 'DescriptorUploaded',
  DescriptorExpired: 'DescriptorExpired',
  UploadPending: 'UploadPending',
  NotPublished: 'NotPublished',

  /** Another tor came through. */
  Reached: 'Reached',
  NoProber: 'NoProber',
  /** The tor that looks reaches nothing else either. */
  ProberSuspect: 'ProberSuspect',
  ProbeDisabled: 'ProbeDisabled',

  PortsFree: 'PortsFree',
  PortTaken: 'PortTaken',
  ServiceNameTaken: 'ServiceNameTaken',
  ListenFailed: 'ListenFailed',
  AccessOpen: 'AccessOpen',
  AllReachable: 'AllReachable',
  ProbePending: 'ProbePending',

  BridgesHealthy: 'BridgesHealthy',
  BridgesDead: 'BridgesDead',
  TooFewBridges: 'TooFewBridges',
  NoBridges: 'NoBridges',
  /** The Secret of the seed, or the key of it, is not there or cannot be read. */
  BridgeSeedNotFound: 'BridgeSeedNotFound',

  Bootstrapped: 'Bootstrapped',
  Bootstrapping: 'Bootstrapping',
  PodNotReady: 'PodNotReady',
  TopologyRejected: 'TopologyRejected',
  /** More is bound to one daemon than a ConfigMap holds. */
  TopologyTooLarge: 'TopologyTooLarge',
  TopologyInForce: 'TopologyInForce',
  VersionSupported: 'VersionSupported',
  VersionTooOld: 'VersionTooOld',
} as const

/** What a reason means and what to do next: text of docs/troubleshooting.md, in `explanations.ts`. */
export interface Explanation {
  /** Conditions that have this reason; Ready repeats it, and is left out. */
  conditions: readonly string[]
  means: string
  /** What a person does next; `Nothing.` where all is well or on its way. */
  next: string
}
