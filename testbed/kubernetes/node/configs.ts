import { join } from 'node:path'
import { stringify } from 'yaml'
import type { Network } from '../types.ts'
import { pauseImage } from './images.ts'

/** Where the node keeps its things, all below one folder. */
export interface NodePaths {
  folder: string
  containerdSocket: string
  containerdConfig: string
  kubeletConfig: string
  proxyConfig: string
  /** Folder of the network's configuration. */
  cni: string
  /** An empty file, so that a pod with dnsPolicy Default has no name server. */
  resolvConf: string
}

export function nodePaths(folder: string): NodePaths {
  return {
    folder,
    containerdSocket: join(folder, 'containerd.sock'),
    containerdConfig: join(folder, 'containerd.toml'),
    kubeletConfig: join(folder, 'kubelet.yaml'),
    proxyConfig: join(folder, 'kube-proxy.yaml'),
    cni: join(folder, 'cni'),
    resolvConf: join(folder, 'resolv.conf'),
  }
}

/** For containerd 1.6, as Debian 12 has it. */
export function containerdConfig(paths: NodePaths): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"'
  const text = JSON.stringify
  return `version = 2
root = ${text(join(paths.folder, 'containerd-root'))}
state = ${text(join(paths.folder, 'containerd-state'))}
[grpc]
  address = ${text(paths.containerdSocket)}
[${cri}]
  sandbox_image = ${text(pauseImage.name)}
  # Lowering a process's score takes a capability that root in a container often lacks; without it no pod would start.
  restrict_oom_score_adj = true
  # Below this folder rather than /run/netns.
  netns_mounts_under_state_dir = true
[${cri}.containerd]
  snapshotter = "overlayfs"
  default_runtime_name = "runc"
[${cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[${cri}.containerd.runtimes.runc.options]
  SystemdCgroup = false
  Root = ${text(join(paths.folder, 'runc'))}
[${cri}.cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = ${text(paths.cni)}
`
}

/** A bridge. Nothing is masqueraded: the machine has a route back to the pods. */
export function cniConfig(paths: NodePaths, network: Network): string {
  const ipam = {
    type: 'host-local',
    dataDir: join(paths.folder, 'cni-addresses'),
    ranges: [[{ subnet: network.podCidr }]],
    routes: [{ dst: '0.0.0.0/0' }],
  }
  const bridge = { type: 'bridge', bridge: 'cni0', isGateway: true, hairpinMode: true, ipMasq: false, ipam }
  const portmap = { type: 'portmap', capabilities: { portMappings: true } }
  return JSON.stringify({ cniVersion: '0.4.0', name: 'testbed', plugins: [bridge, portmap] })
}

export function kubeletConfig(
  paths: NodePaths,
  node: { pki: string; network: Network; cgroup: string },
): string {
  return stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    failCgroupV1: false,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: node.cgroup,
    oomScoreAdj: 0,
    failSwapOn: false,
    enforceNodeAllocatable: [],
    containerRuntimeEndpoint: `unix://${paths.containerdSocket}`,
    address: '0.0.0.0',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: join(node.pki, 'ca.crt') },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: join(node.pki, 'kubelet-serving.crt'),
    tlsPrivateKeyFile: join(node.pki, 'kubelet-serving.key'),
    clusterDNS: [node.network.dnsAddress],
    clusterDomain: 'cluster.local',
    resolvConf: paths.resolvConf,
    podLogsDir: join(paths.folder, 'pod-logs'),
    evictionHard: {
      'memory.available': '100Mi',
      'nodefs.available': '1%',
      'nodefs.inodesFree': '1%',
      'imagefs.available': '1%',
    },
    // Never collect images: nothing could pull them again.
    imageGCHighThresholdPercent: 100,
  })
}

export function proxyConfig(node: { kubeconfig: string; name: string; network: Network }): string {
  return stringify({
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'nftables',
    clientConnection: { kubeconfig: node.kubeconfig },
    clusterCIDR: node.network.podCidr,
    hostnameOverride: node.name,
    oomScoreAdj: 0,
    // Leaves the machine's settings alone.
    conntrack: { maxPerCore: 0, min: 0 },
  })
}
