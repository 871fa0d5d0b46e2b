/** Condition types and reasons of the tor kinds: what programs may rely on. */

export const OnionCondition = {
  Ready: 'Ready',
  KeyValid: 'KeyValid',
  BackendReady: 'BackendReady',
  Published: 'Published',
} as const

export const ProxyCondition = {
  Ready: 'Ready',
  PortsAccepted: 'PortsAccepted',
  TargetsReachable: 'TargetsReachable',
} as const

export const DaemonCondition = {
  Ready: 'Ready',
  TorBootstrapped: 'TorBootstrapped',
  TopologyApplied: 'TopologyApplied',
  VersionSupported: 'VersionSupported',
} as const

export const Reason = {
  /** Nothing is known yet. */
  Pending: 'Pending',
  /** All is as it should be. */
  Ready: 'Ready',

  DaemonNotFound: 'DaemonNotFound',
  AgentSilent: 'AgentSilent',

  KeyLoaded: 'KeyLoaded',
  KeySecretNotFound: 'KeySecretNotFound',
  DuplicateKey: 'DuplicateKey',

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

  PortsFree: 'PortsFree',
  PortTaken: 'PortTaken',
  ServiceNameTaken: 'ServiceNameTaken',
  ListenFailed: 'ListenFailed',
  AllReachable: 'AllReachable',
  ProbePending: 'ProbePending',

  Bootstrapped: 'Bootstrapped',
  Bootstrapping: 'Bootstrapping',
  PodNotReady: 'PodNotReady',
  TopologyRejected: 'TopologyRejected',
  TopologyInForce: 'TopologyInForce',
  VersionSupported: 'VersionSupported',
  VersionTooOld: 'VersionTooOld',
} as const
