/** The parts of the test bed and what they know of each other: the control plane makes a Testbed, the node builds on it. */

export const PROGRAMS = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'coredns',
] as const

export type ProgramName = (typeof PROGRAMS)[number]

/** Absolute paths. A path says nothing of whether the program is there: `buildPrograms(names)` sees to that. */
export type Programs = Readonly<Record<ProgramName, string>>

/** Addresses without a length unless they are called Cidr. */
export interface Network {
  /** Name below /run/netns; undefined where the machine allows none: everything is on loopback then, without a node. */
  namespace: string | undefined
  /** The node's, in the namespace: 10.201.N.2. Everything there is reached by it. */
  nodeAddress: string
  /** The machine's end: 10.201.N.1. Pods reach listeners of a test process there. */
  hostAddress: string
  /** 10.244.N.0/24 */
  podCidr: string
  /** 10.96.N.0/24. Routed from the machine, and from within the namespace. */
  serviceCidr: string
  /** Of the cluster's DNS: the tenth of serviceCidr. */
  dnsAddress: string
  /** Of the Service `kubernetes`: the first of serviceCidr. */
  apiAddress: string
}

/** Paths of kubeconfigs. Certificates and keys are inlined, so each is whole by itself. */
export interface Kubeconfigs {
  admin: string
  controllerManager: string
  scheduler: string
  kubelet: string
  proxy: string
}

export interface SpawnOptions {
  /** Added to PATH, HOME and TMPDIR; nothing else is inherited. */
  env?: Record<string, string>
  /** Is it ready? Asked every 50 ms until it says true; what it throws means no. Default: ready once it runs. */
  ready?: (signal: AbortSignal) => Promise<boolean>
  /** Milliseconds until `ready` must have said true. Default 60,000. */
  readyWithin?: number
}

export interface Process {
  readonly name: string
  readonly pid: number
  /** Path of what it wrote to stdout and stderr. */
  readonly log: string
  readonly running: boolean
  /** When it is gone, and how: "code 1" or "signal SIGKILL". */
  readonly exited: Promise<string>
  /** SIGTERM, and SIGKILL after `grace` milliseconds (default 10,000). Resolves when it is gone. */
  stop(grace?: number): Promise<void>
  /** SIGKILL. Resolves when it is gone. */
  kill(): Promise<void>
}

export interface Testbed {
  /** Absolute path of the folder with everything of this run; removed by whoever made it, after `stop()`. */
  state: string
  /** The node's name, as the kubelet's certificates have it. */
  nodeName: string
  programs: Programs
  network: Network
  /**
   * Folder: ca, apiserver, apiserver-kubelet, front-proxy-ca, front-proxy, kubelet, kubelet-serving (each .crt and .key),
   * sa.key and sa.pub.
   */
  pki: string
  kubeconfigs: Kubeconfigs
  /** https://10.201.N.2:6443 */
  url: string
  /**
   * Starts a program within the network namespace, its log in `state`/logs/NAME.log. It dies with this process, however
   * that ends. Rejects with the log's last lines when it ends before it is ready. `stop()` of the test bed stops what still
   * runs, the last started first.
   */
  spawn(name: string, command: string, args: readonly string[], options?: SpawnOptions): Promise<Process>
}

/**
 * What node/leftovers.ts has as `removeNodeLeftovers`: ends containers, shims, mounts and cgroups that a run with this state
 * folder has left. Called at the next start of any test bed when the run's process is dead, before the folder is deleted; the
 * folder may be there only in part.
 */
export type RemoveNodeLeftovers = (state: string) => Promise<void>
