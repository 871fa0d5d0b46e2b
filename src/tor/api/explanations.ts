import { AGENT_EXPLANATIONS } from './agent-explanations.ts'
import type { Explanation, Reason } from './reasons.ts'

/** What each reason means and what to do next: the text of docs/troubleshooting.md. */

const ALL = [
  'BridgesHealthy',
  'KeyValid',
  'AuthConfigured',
  'BackendReady',
  'Published',
  'Reachable',
  'PortsAccepted',
  'TargetsReachable',
  'TorBootstrapped',
  'TopologyApplied',
  'VersionSupported',
  'AccessReady',
]
const OF_THE_AGENT = [
  'Published',
  'PortsAccepted',
  'TargetsReachable',
  'TorBootstrapped',
  'VersionSupported',
  'AccessReady',
]

const EXPLANATIONS: Readonly<Record<keyof typeof Reason, Explanation>> = {
  Pending: {
    conditions: ALL,
    means: 'Nothing is known yet: the object, its key, its daemon or its pod is only just being made.',
    next: 'Wait a moment. If it stays, look at the operator (`kubectl -n postern-system get pods`) and at the pod of the daemon.',
  },
  Ready: {
    conditions: [],
    means: 'All that was asked for is so: every other condition is True.',
    next: 'Nothing.',
  },
  DaemonNotFound: {
    conditions: OF_THE_AGENT,
    means:
      '`spec.daemonRef` names a TorDaemon that is not in this namespace. Only the daemon `tor` is made when missing.',
    next: 'Create the TorDaemon, correct the name, or remove `spec.daemonRef`.',
  },
  AgentSilent: {
    conditions: OF_THE_AGENT,
    means:
      "The daemon's pod runs, and the operator cannot get its agent's report. What is published stays published; what is known of it is too old to be repeated.",
    next: "See the log of the daemon's pod. Check that a NetworkPolicy or a mesh lets the operator's pods reach its port 9081.",
  },
  PodNotReady: {
    conditions: OF_THE_AGENT,
    means:
      "A container of the daemon's pod waits: its image cannot be pulled, it ends again and again, or a volume is missing.",
    next: "`kubectl describe pod` of the daemon's pod says what it waits for; correct the image, the registry's Secret or `spec.podTemplate`.",
  },
  NameTaken: {
    conditions: ['KeyValid', ...OF_THE_AGENT, 'TopologyApplied'],
    means:
      'An object with a name that is needed is there already and was made by somebody else. It is never taken over.',
    next: 'Delete or rename the object that the message names, or give the TorDaemon or OnionService another name. A Secret with a key of yours belongs into `spec.privateKeySecret`.',
  },
  ObjectRefused: {
    conditions: ['KeyValid', ...OF_THE_AGENT, 'TopologyApplied'],
    means:
      'The cluster does not take an object that is needed: a quota, an admission rule, a missing permission, or a value in `spec.podTemplate` that no pod may have.',
    next: 'The message has the words of the API server: correct what it names. The roles of the operator are in deploy/base/rbac.yaml.',
  },
  ClientsKnown: {
    conditions: ['AuthConfigured'],
    means: 'The onion is private: only the clients of `spec.clientAuthorization` can find it and connect.',
    next: 'Nothing. Generated keys stand in the Secrets `<onion>-client-<name>`.',
  },
  ClientKeyInvalid: {
    conditions: ['AuthConfigured', 'TargetsReachable'],
    means:
      'A key of a client is none. The client cannot connect; an onion that has no other client is not published.',
    next: 'Correct what the message names: a public key has 52 characters of base32; a private one is the line of the `.auth_private` file, or the key in base32 or base64.',
  },
  ClientSecretNotFound: {
    conditions: ['TargetsReachable'],
    means: 'The Secret that `clientAuthSecret` names does not exist.',
    next: 'Create it in the namespace of the OnionProxy, with your private key; or correct the name.',
  },
  NoBridges: {
    conditions: ['TorBootstrapped', 'BridgesHealthy'],
    means:
      'There is no usable bridge, and a daemon with bridges never connects without one: tor stays off the network.',
    next: 'Put bridges of the right transport into the seed Secret, or check the source that they are fetched from.',
  },
  BridgesHealthy: {
    conditions: ['BridgesHealthy'],
    means: 'tor reaches enough of the bridges.',
    next: 'Nothing. The message names lines of the seed that are none, where there are any.',
  },
  BridgesDead: {
    conditions: ['BridgesHealthy'],
    means:
      'tor reaches none of the bridges. While that is so none is taken out: it may be the network here, not the bridges.',
    next: 'Check that pods may connect to the outside; then put other bridges into the seed Secret.',
  },
  TooFewBridges: {
    conditions: ['BridgesHealthy'],
    means: 'Fewer bridges than `minHealthy` are left that are not dead. Onions go on over the others.',
    next: 'Put more bridges into the seed Secret, or give a source; the message says what came of the last fetch.',
  },
  BridgeSeedNotFound: {
    conditions: ['BridgesHealthy'],
    means:
      'The Secret of `bridges.seed` is not there, has no such key, or cannot be read. Bridges that are known stay in use.',
    next: 'Create it with a bridge a line, or correct `bridges.seed`.',
  },
  KeyLoaded: { conditions: ['KeyValid'], means: 'The key is there and fits the address.', next: 'Nothing.' },
  KeySecretNotFound: {
    conditions: ['KeyValid'],
    means: '`spec.privateKeySecret` names a Secret that is not in this namespace.',
    next: 'Create it with the key in `hs_ed25519_secret_key`, correct the name, or remove the field to have a key made.',
  },
  KeySecretUnreadable: {
    conditions: ['KeyValid'],
    means: 'The operator may not read the Secret, or cannot now.',
    next: "Give the operator's role `get`, `list` and `watch` of Secrets in this namespace; see the message for what the API server said.",
  },
  DuplicateKey: {
    conditions: ['KeyValid'],
    means:
      'An older OnionService has the same key. Two onions of one address would take visitors from each other, so only the older one is published.',
    next: 'Give this one a key of its own, or delete one of the two.',
  },
  EndpointsReady: {
    conditions: ['BackendReady'],
    means: 'Every port has a backend that is ready.',
    next: 'Nothing.',
  },
  ServiceNotFound: {
    conditions: ['BackendReady'],
    means:
      'The Service of a port is not in this namespace. The onion stays published, with nothing behind that port.',
    next: 'Create the Service, or correct `spec.ports[].backend.service`.',
  },
  PortNotFound: {
    conditions: ['BackendReady'],
    means: 'The Service has no TCP port of this number or name. Tor carries TCP only.',
    next: 'Correct `spec.ports[].backend.port`: the message lists the ports that there are.',
  },
  NoReadyEndpoints: {
    conditions: ['BackendReady'],
    means: 'No pod of the Service is ready.',
    next: 'Check the selector of the Service and the readiness of its pods: `kubectl get endpointslices -l kubernetes.io/service-name=NAME`.',
  },
  AddressRefused: {
    conditions: ['BackendReady'],
    means:
      "The Service leads to an address that is never dialled: the daemon's own pod, a link-local or a metadata address.",
    next: 'Correct the addresses of its EndpointSlice.',
  },
  ExternalNameRefused: {
    conditions: ['BackendReady'],
    means:
      'The Service is an ExternalName: visitors would be sent to a name outside, which whoever owns that name decides.',
    next: 'Use a Service without a selector and an EndpointSlice with the addresses.',
  },
  BackendUnreachable: {
    conditions: ['BackendReady', 'Reachable'],
    means:
      'A visitor came and the backend could not be reached, although Kubernetes calls it ready. Tor is not to blame, so nothing is tried on its side.',
    next: "Check that it listens on the Service's target port, and that its NetworkPolicies let the daemon's pod in.",
  },
  DescriptorUploaded: {
    conditions: ['Published'],
    means: 'A directory of the Tor network acknowledged the descriptor: the onion can be found.',
    next: 'Nothing.',
  },
  DescriptorExpired: {
    conditions: ['Published'],
    means: 'No upload of the descriptor was acknowledged for three hours: nobody finds the onion any more.',
    next: "See the conditions of the TorDaemon and the log of its pod; check the cluster's way to the internet and its clock.",
  },
  UploadPending: {
    conditions: ['Published'],
    means:
      'tor is connected, and no directory has acknowledged the descriptor yet. This takes seconds to a minute.',
    next: "Nothing, for some minutes. After that see the log of the daemon's pod.",
  },
  NotPublished: {
    conditions: ['Published', 'Reachable'],
    means: 'It is not published, for the reason that another condition has.',
    next: 'See KeyValid, Published, and the message.',
  },
  Reached: {
    conditions: ['Reachable'],
    means:
      'The tor of another namespace found the descriptor, was introduced, met the onion, and its backend took the connection (with `spec.probe.http`: answered).',
    next: 'Nothing.',
  },
  NoProber: {
    conditions: ['Reachable'],
    means:
      'No other namespace has a TorDaemon that is connected, or the one that looks at this onion is not heard of just now; the own tor would see the onion with its own eyes. Ready does not depend on it.',
    next: 'Nothing, or create a TorDaemon in another namespace: `docs/reachability.md`.',
  },
  ProberSuspect: {
    conditions: ['Reachable'],
    means:
      'The daemon that looks at this onion reaches nothing else either, or failed for a reason of its own: that says more of it than of the onion. Nothing is tried. Ready does not depend on it.',
    next: "See the TorDaemon that the message names: its log, its way out, and its node's clock.",
  },
  ProbeDisabled: {
    conditions: ['Reachable'],
    means: '`spec.probe.enabled` is false.',
    next: 'Nothing.',
  },
  PortsFree: {
    conditions: ['PortsAccepted'],
    means: 'Every target has its port.',
    next: 'Nothing.',
  },
  PortTaken: {
    conditions: ['PortsAccepted'],
    means:
      'An older OnionProxy of the same daemon has this `listenPort`, or `spec.socks` or `spec.httpConnect` of the TorDaemon does, which come first. All proxies of a daemon share one pod, and so its ports.',
    next: 'Choose another `listenPort`, or give one of the two a daemon of its own by `spec.daemonRef`.',
  },
  ServiceNameTaken: {
    conditions: ['PortsAccepted'],
    means: 'A Service of the name of this proxy is there already and is not its own.',
    next: 'Rename the OnionProxy or the Service.',
  },
  ListenFailed: {
    conditions: ['PortsAccepted', 'Published', 'AccessReady'],
    means:
      'The agent, or tor, cannot listen: on the port of a target, on that of `spec.socks` or `spec.httpConnect`, or on the socket of an onion. It is tried again.',
    next: 'The message has the words of the system. Ports below 1024 need `net.ipv4.ip_unprivileged_port_start` to allow them; on one machine another program may have the port: choose another one.',
  },
  AccessOpen: {
    conditions: ['AccessReady'],
    means: 'tor takes the workloads of the namespace in at the ports that the status names.',
    next: 'Nothing.',
  },
  AllReachable: {
    conditions: ['TargetsReachable'],
    means: 'A fresh circuit reached every target.',
    next: 'Nothing.',
  },
  ProbePending: {
    conditions: ['TargetsReachable', 'Reachable'],
    means:
      'Not every target was probed yet; or the onion was not, or not often enough to say that it cannot be reached.',
    next: 'Nothing. A first look comes seconds after an onion is published, and a second one some seconds after a failure.',
  },
  Bootstrapped: {
    conditions: ['TorBootstrapped'],
    means: 'tor is connected to the network.',
    next: 'Nothing.',
  },
  Bootstrapping: {
    conditions: ['TorBootstrapped', 'Published'],
    means: 'tor is connecting to the network. The first time takes up to some minutes.',
    next: "If it stays at one per cent figure, check the cluster's way out: tor needs TCP to many addresses and ports. The message says what it waits for.",
  },
  TopologyRejected: {
    conditions: ['TopologyApplied'],
    means: 'The agent cannot use all that it was given; what was in force before stays in force.',
    next: 'Correct what the message names. If it speaks of a version, let the operator and the daemon have the same release.',
  },
  TopologyTooLarge: {
    conditions: ['TopologyApplied'],
    means:
      'More is bound to this daemon than a ConfigMap or a Secret holds (1 MiB). What was in force before stays in force.',
    next: 'Create a second TorDaemon and bind part of the onions and proxies to it by `spec.daemonRef`.',
  },
  TopologyInForce: {
    conditions: ['TopologyApplied'],
    means: 'All that was asked for is in force.',
    next: 'Nothing.',
  },
  VersionSupported: {
    conditions: ['VersionSupported'],
    means: 'This version of tor has no known fault that matters here.',
    next: 'Nothing.',
  },
  VersionTooOld: {
    conditions: ['VersionSupported'],
    means: 'This version of tor has known faults in onion services.',
    next: "Use the image of this release of Postern for the daemons; on one machine update the package 'tor'.",
  },
}

/** Every reason that a condition of ours can have, the operator's and the agent's. */
export const REASON_EXPLANATIONS: Readonly<Record<string, Explanation>> = {
  ...EXPLANATIONS,
  ...AGENT_EXPLANATIONS,
}
