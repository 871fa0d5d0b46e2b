import { REFUSED_OPTIONS, refusedOption } from '../../src/tor/options.ts'
import { ACCESS_EXAMPLES } from './access-examples.ts'
import { BRIDGE_EXAMPLES } from './bridge-examples.ts'
import { PRIVATE_EXAMPLES } from './private-examples.ts'
import { PROBE_EXAMPLES } from './probe-examples.ts'

/** Good and bad specs of the tor kinds: each bad one with the field and the words that an API server answers. */

export interface Example {
  kind: 'OnionService' | 'OnionProxy' | 'TorDaemon'
  what: string
  /** Undefined: an object without one. */
  spec?: unknown
  name?: string
  /** What is wrong with it; without it the example is good. */
  wrong?: {
    /** As in the answer, e.g. `spec.ports[0].virtualPort`. */
    field: string
    /** Words that both checks use. */
    says?: string
    /** Words that only the API server uses. */
    server?: RegExp
  }
}

const ONION = 'libera75jm6of4wxpxt4aynol3xjmbtxgfyjpu34ss4d7r7q2v5zrpyd'
const FORM = "must be lower-case letters, digits and '-', begin with a letter and end with a letter or digit"

const backend = (more: object = {}): object => ({ service: 'web', port: 80, ...more })
const port = (virtualPort: unknown = 80, more: object = {}): object => ({
  virtualPort,
  backend: backend(more),
})
const ports = (...all: object[]): object => ({ ports: all })
const target = (more: object = {}): object => ({
  name: 'libera',
  onion: `${ONION}.onion`,
  port: 6697,
  listenPort: 6697,
  ...more,
})
const targets = (...all: object[]): object => ({ targets: all })
const many = <T>(count: number, one: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => one(index))

const onions: Omit<Example, 'kind'>[] = [
  { what: 'a port by its name', spec: ports(port(80, { port: 'http' })) },
  { what: 'every port that there may be', spec: ports(...many(32, (index) => port(index + 1))) },
  {
    what: 'all that there is',
    spec: {
      ...ports(port(1), port(65535)),
      privateKeySecret: { name: 'my.key' },
      daemonRef: { name: 'd'.repeat(55) },
      keyRetention: 'Delete',
    },
  },
  { what: 'the longest name', name: 'a'.repeat(243), spec: ports(port()) },
  { what: 'no spec', wrong: { field: 'spec', server: /Required value/ } },
  { what: 'no ports', spec: {}, wrong: { field: 'spec.ports', server: /Required value/ } },
  { what: 'empty ports', spec: ports(), wrong: { field: 'spec.ports', server: /at least 1 items/ } },
  {
    what: 'too many ports',
    spec: ports(...many(33, (index) => port(index + 1))),
    wrong: { field: 'spec.ports', server: /at most 32 items/ },
  },
  {
    what: 'port 0',
    spec: ports(port(0)),
    wrong: { field: 'spec.ports[0].virtualPort', server: /greater than or equal to 1/ },
  },
  {
    what: 'port 65536',
    spec: ports(port(65536)),
    wrong: { field: 'spec.ports[0].virtualPort', server: /less than or equal to 65535/ },
  },
  {
    what: 'a port in quotes',
    spec: ports(port('80')),
    wrong: { field: 'spec.ports[0].virtualPort', server: /must be of type integer/ },
  },
  {
    what: 'two virtual ports alike',
    spec: ports(port(80), port(443), port(443)),
    wrong: {
      field: 'spec.ports',
      server: /port 443 is there already; each virtualPort may stand once/,
    },
  },
  {
    what: 'a Service that no Service can be',
    spec: ports(port(80, { service: 'Web' })),
    wrong: { field: 'spec.ports[0].backend.service', says: `${FORM}, since it names a Service` },
  },
  {
    what: 'a Service with too long a name',
    spec: ports(port(80, { service: 'a'.repeat(64) })),
    wrong: { field: 'spec.ports[0].backend.service', server: /may not be more than 63/ },
  },
  {
    what: 'backend port 0',
    spec: ports(port(80, { port: 0 })),
    wrong: { field: 'spec.ports[0].backend.port', server: /greater than or equal to 1/ },
  },
  {
    what: 'backend port 70000',
    spec: ports(port(80, { port: 70000 })),
    wrong: { field: 'spec.ports[0].backend.port', server: /less than or equal to 65535/ },
  },
  {
    what: 'a backend port of no name',
    spec: ports(port(80, { port: 'HTTP_1' })),
    wrong: { field: 'spec.ports[0].backend.port', says: "must be a port number or a port's name" },
  },
  {
    what: 'a backend port with too long a name',
    spec: ports(port(80, { port: 'a'.repeat(16) })),
    wrong: { field: 'spec.ports[0].backend.port', server: /may not be more than 15/ },
  },
  {
    what: 'a backend in another namespace',
    spec: ports(port(80, { namespace: 'other' })),
    wrong: {
      field: 'spec.ports[0].backend.namespace',
      says: 'a backend in another namespace is not possible; publish the onion in the namespace of the Service',
    },
  },
  {
    what: 'a Secret that no Secret can be',
    spec: { ...ports(port()), privateKeySecret: { name: 'My_Key' } },
    wrong: {
      field: 'spec.privateKeySecret.name',
      says: "must be lower-case letters, digits, '-' and '.', as every name in Kubernetes",
    },
  },
  {
    what: 'a Secret without a name',
    spec: { ...ports(port()), privateKeySecret: {} },
    wrong: { field: 'spec.privateKeySecret.name', server: /Required value/ },
  },
  {
    what: 'a daemon that no daemon can be',
    spec: { ...ports(port()), daemonRef: { name: '1tor' } },
    wrong: { field: 'spec.daemonRef.name', says: `${FORM}, since it names the daemon's objects` },
  },
  {
    what: 'a retention that does not exist',
    spec: { ...ports(port()), keyRetention: 'Keep' },
    wrong: { field: 'spec.keyRetention', server: /supported values: "Retain", "Delete"/ },
  },
  {
    what: 'too long a name',
    name: 'a'.repeat(244),
    spec: ports(port()),
    wrong: { field: 'metadata.name', says: 'must be at most 243 characters' },
  },
]

const proxies: Omit<Example, 'kind'>[] = [
  {
    what: 'an address as people write it',
    spec: targets(target({ onion: ` www.${ONION.toUpperCase()}.Onion ` })),
  },
  { what: 'an address without .onion', spec: targets(target({ onion: ONION })) },
  {
    what: 'every target that there may be',
    spec: targets(...many(64, (index) => target({ name: `t${index}`, listenPort: 7000 + index }))),
  },
  { what: 'no targets', spec: {}, wrong: { field: 'spec.targets', server: /Required value/ } },
  { what: 'empty targets', spec: targets(), wrong: { field: 'spec.targets', server: /at least 1 items/ } },
  {
    what: 'too many targets',
    spec: targets(...many(65, (index) => target({ name: `t${index}`, listenPort: 7000 + index }))),
    wrong: { field: 'spec.targets', server: /at most 64 items/ },
  },
  {
    what: 'two listen ports alike',
    spec: targets(target(), target({ name: 'other' })),
    wrong: { field: 'spec.targets', server: /port 6697 is there already; each listenPort may stand once/ },
  },
  {
    what: 'two names alike',
    spec: targets(target(), target({ listenPort: 6698 })),
    wrong: { field: 'spec.targets', server: /'libera' is there already; each name may stand once/ },
  },
  ...[9080, 9081].map((listenPort) => ({
    what: `listen port ${listenPort}`,
    spec: targets(target({ listenPort })),
    wrong: {
      field: 'spec.targets[0].listenPort',
      says: 'must not be one of 9080 and 9081, which the daemon uses itself',
    },
  })),
  {
    what: 'listen port 0',
    spec: targets(target({ listenPort: 0 })),
    wrong: { field: 'spec.targets[0].listenPort', server: /greater than or equal to 1/ },
  },
  {
    what: 'port 65536',
    spec: targets(target({ port: 65536 })),
    wrong: { field: 'spec.targets[0].port', server: /less than or equal to 65535/ },
  },
  {
    what: 'a target of no name',
    spec: targets(target({ name: 'Libera!' })),
    wrong: {
      field: 'spec.targets[0].name',
      says: "must be lower-case letters, digits, '-' and '.', as every name in Kubernetes",
    },
  },
  {
    what: 'an address of version 2',
    spec: targets(target({ onion: 'expyuzz4wqqyqhjn.onion' })),
    wrong: {
      field: 'spec.targets[0].onion',
      says: 'This is an onion address of version 2 (16 characters), which tor stopped speaking in 2021: ask the service for its version 3 address of 56 characters',
    },
  },
  ...['example.org', `http://${ONION}.onion`, `${ONION}.onion:80`].map((onion) => ({
    what: `the address ${onion}`,
    spec: targets(target({ onion })),
    wrong: {
      field: 'spec.targets[0].onion',
      says: 'This is not an onion address: give the host name only, 56 characters of a-z and 2-7 followed by .onion, without scheme, port or path',
    },
  })),
  {
    what: 'an address of no version',
    spec: targets(target({ onion: `${ONION.slice(0, -1)}a.onion` })),
    wrong: { field: 'spec.targets[0].onion', server: /Only version 3 of onion addresses exists/ },
  },
  {
    what: 'a name that no Service can have',
    name: 'up.streams',
    spec: targets(target()),
    wrong: { field: 'metadata.name', says: `${FORM}, since it names the Service of this proxy` },
  },
  {
    what: 'too long a name',
    name: 'a'.repeat(64),
    spec: targets(target()),
    wrong: {
      field: 'metadata.name',
      says: 'must be at most 63 characters, since it names the Service of this proxy',
    },
  },
]

const template = (metadata: object, spec: object = {}): object => ({ podTemplate: { metadata, spec } })
const OWN =
  'may not set names that begin with app.kubernetes.io/ or tor.fr0st.dev/, which the operator sets itself'

const daemons: Omit<Example, 'kind'>[] = [
  { what: 'no spec' },
  { what: 'an empty spec', spec: {} },
  {
    what: 'all that there is',
    spec: {
      logLevel: 'debug',
      resources: { requests: { cpu: '50m', memory: '64Mi' }, limits: { memory: '0.5Gi' } },
      options: { CircuitBuildTimeout: '60', MapAddress: 'a b\nc d' },
      ...template(
        { labels: { team: 'doors' }, annotations: { 'example.org/note': 'x' } },
        {
          nodeSelector: { disk: 'ssd' },
          tolerations: [{ key: 'tor', operator: 'Exists', effect: 'NoSchedule' }],
          affinity: { nodeAffinity: { anything: [{ goes: true }] } },
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: 'zone',
              whenUnsatisfiable: 'ScheduleAnyway',
              labelSelector: { matchLabels: { team: 'doors' } },
            },
          ],
          priorityClassName: 'high',
          runtimeClassName: 'gvisor',
          imagePullSecrets: [{ name: 'pull' }],
          terminationGracePeriodSeconds: 600,
          securityContext: {
            runAsUser: 1000,
            runAsGroup: 0,
            fsGroup: 1000,
            fsGroupChangePolicy: 'OnRootMismatch',
            supplementalGroups: [1, 2],
          },
        },
      ),
    },
  },
  {
    what: 'a log level that does not exist',
    spec: { logLevel: 'loud' },
    wrong: { field: 'spec.logLevel', server: /Unsupported value/ },
  },
  {
    what: 'a quantity that is none',
    spec: { resources: { limits: { memory: '256 MB' } } },
    wrong: { field: 'spec.resources.limits.memory', says: 'must be a quantity such as 256Mi or 500m' },
  },
  {
    what: 'an option of no name',
    spec: { options: { 'Circuit Timeout': '1' } },
    wrong: { field: 'spec.options', server: /Circuit Timeout: must be the name of a torrc option/ },
  },
  {
    what: 'too many options',
    spec: { options: Object.fromEntries(many(65, (index) => [`Option${index}`, '1'])) },
    wrong: { field: 'spec.options', server: /at most 64/ },
  },
  {
    what: 'an option that is too long',
    spec: { options: { MapAddress: 'a'.repeat(16385) } },
    wrong: { field: 'spec.options.MapAddress', server: /may not be more than 16384/ },
  },
  ...[
    ...Object.keys(REFUSED_OPTIONS),
    'hiddenServiceDir',
    'accelName',
    'serverTransportPlugin',
    'serverDNSSearchDomains',
    '__SocksPort',
  ].map((option) => {
    // tor reads the names of options in any case.
    const name = option.replace(/^[a-z]+/, (word) => word.toUpperCase())
    return {
      what: `the option ${name}`,
      spec: { options: { CircuitBuildTimeout: '60', [name]: '1' } },
      wrong: {
        field: 'spec.options',
        server: new RegExp(`${name}: may not be set here: ${escaped(refusedOption(name))}$`),
      },
    }
  }),
  ...['app.kubernetes.io/name', 'tor.fr0st.dev/start-options'].map((label) => ({
    what: `the label ${label}`,
    spec: template({ labels: { [label]: 'x' } }),
    wrong: { field: 'spec.podTemplate.metadata.labels', says: OWN },
  })),
  {
    what: 'an annotation of the operator',
    spec: template({ annotations: { 'tor.fr0st.dev/mounted': 'x' } }),
    wrong: { field: 'spec.podTemplate.metadata.annotations', says: OWN },
  },
  {
    what: 'root',
    spec: template({}, { securityContext: { runAsUser: 0 } }),
    wrong: {
      field: 'spec.podTemplate.spec.securityContext.runAsUser',
      server: /greater than or equal to 1/,
    },
  },
  ...[29, 601].map((terminationGracePeriodSeconds) => ({
    what: `a grace period of ${terminationGracePeriodSeconds} s`,
    spec: template({}, { terminationGracePeriodSeconds }),
    wrong: {
      field: 'spec.podTemplate.spec.terminationGracePeriodSeconds',
      server: /than or equal to (30|600)/,
    },
  })),
  {
    what: 'too long a name',
    name: 'a'.repeat(56),
    wrong: {
      field: 'metadata.name',
      says: "must be at most 55 characters, since it names the daemon's objects",
    },
  },
]

function escaped(text: string | undefined): string {
  return (text ?? '').replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

export const EXAMPLES: Example[] = [
  ...onions.map((example): Example => ({ kind: 'OnionService', ...example })),
  ...proxies.map((example): Example => ({ kind: 'OnionProxy', ...example })),
  ...daemons.map((example): Example => ({ kind: 'TorDaemon', ...example })),
  ...PRIVATE_EXAMPLES,
  ...BRIDGE_EXAMPLES,
  ...ACCESS_EXAMPLES,
  ...PROBE_EXAMPLES,
]
