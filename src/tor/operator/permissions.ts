import type { Permission } from '../../controller/permissions.ts'

const READ = ['get', 'list', 'watch']
const OWN = [...READ, 'create', 'patch', 'delete']
const TOR = ['tor.fr0st.dev']

/**
 * What the tor controller may do: the rules of its ClusterRole, or of a Role in each namespace that it serves. All of
 * its writes are server-side applies (`patch`, and `create` where the object is new), creations and deletions.
 */
export const TOR_PERMISSIONS: readonly Permission[] = [
  {
    reason: 'What users declare.',
    apiGroups: TOR,
    resources: ['onionservices', 'onionproxies', 'tordaemons'],
    verbs: READ,
  },
  {
    reason: 'What became of it. Nothing else of an object that a user declared is ever written.',
    apiGroups: TOR,
    resources: ['onionservices/status', 'onionproxies/status', 'tordaemons/status'],
    verbs: ['patch'],
  },
  {
    reason:
      'The TorDaemon that is made where one is needed and none is declared, and removed with its last user.',
    apiGroups: TOR,
    resources: ['tordaemons'],
    verbs: ['create', 'patch', 'delete'],
  },
  {
    reason:
      'Owner references that hold up the deletion of their owner, where the cluster guards those (OpenShift).',
    apiGroups: TOR,
    resources: ['onionservices/finalizers', 'onionproxies/finalizers', 'tordaemons/finalizers'],
    verbs: ['update'],
  },
  {
    reason:
      "Backends of onions, which are users' own; and the Services of proxies, of daemons' metrics, and of their SOCKS and HTTP CONNECT.",
    apiGroups: [''],
    resources: ['services'],
    verbs: OWN,
  },
  {
    reason: 'Where the backends are, and whether they are ready.',
    apiGroups: ['discovery.k8s.io'],
    resources: ['endpointslices'],
    verbs: READ,
  },
  {
    reason:
      "Daemons' pods: their address and state; an annotation on them makes the kubelet look at their volumes at once.",
    apiGroups: [''],
    resources: ['pods'],
    verbs: [...READ, 'patch'],
  },
  {
    reason: 'The topology of each daemon.',
    apiGroups: [''],
    resources: ['configmaps'],
    verbs: OWN,
  },
  {
    reason:
      "Keys of onions, and the keys that each daemon mounts. Secrets are listed and watched only by the label app.kubernetes.io/managed-by=tor-operator, and a user's own only by the name in spec.privateKeySecret; RBAC cannot say so, since it knows no labels and not these names.",
    apiGroups: [''],
    resources: ['secrets'],
    verbs: OWN,
  },
  {
    reason: "Daemons' own accounts, which have no rights and no token.",
    apiGroups: [''],
    resources: ['serviceaccounts'],
    verbs: OWN,
  },
  {
    reason: 'The daemons.',
    apiGroups: ['apps'],
    resources: ['deployments'],
    verbs: OWN,
  },
  {
    reason: "Where tor's guards are kept, for daemons with spec.persistence.",
    apiGroups: [''],
    resources: ['persistentvolumeclaims'],
    verbs: OWN,
  },
  {
    reason: 'How many pods of a daemon a drain may take.',
    apiGroups: ['policy'],
    resources: ['poddisruptionbudgets'],
    verbs: OWN,
  },
  {
    reason: 'Who may connect to a daemon.',
    apiGroups: ['networking.k8s.io'],
    resources: ['networkpolicies'],
    verbs: OWN,
  },
  {
    reason:
      'Events of what is declared; one that is there already, written by another operator before, is counted on.',
    apiGroups: ['events.k8s.io'],
    resources: ['events'],
    verbs: ['get', 'create', 'patch'],
  },
]
