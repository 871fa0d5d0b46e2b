import { join } from 'node:path'
import type { Kubeconfigs, Network } from './types.ts'

/** Ports in a namespace of their own are the usual ones; on loopback they are chosen free. */
export interface Ports {
  etcd: number
  etcdPeer: number
  apiserver: number
  controllerManager: number
  scheduler: number
}

export const usualPorts: Ports = {
  etcd: 2379,
  etcdPeer: 2380,
  apiserver: 6443,
  controllerManager: 10257,
  scheduler: 10259,
}

/** What the command lines of the control plane are made of. */
export interface Plan {
  state: string
  pki: string
  network: Network
  ports: Ports
}

export const etcdUrl = ({ network, ports }: Plan): string => `http://${network.nodeAddress}:${ports.etcd}`

export function etcdFlags(plan: Plan): string[] {
  const peer = `http://127.0.0.1:${plan.ports.etcdPeer}`
  return [
    `--data-dir=${join(plan.state, 'etcd')}`,
    '--unsafe-no-fsync',
    `--listen-client-urls=${etcdUrl(plan)}`,
    `--advertise-client-urls=${etcdUrl(plan)}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
  ]
}

export function apiserverFlags(plan: Plan): string[] {
  const { network, ports } = plan
  const file = (name: string) => join(plan.pki, name)
  return [
    `--etcd-servers=${etcdUrl(plan)}`,
    `--bind-address=${network.namespace === undefined ? network.nodeAddress : '0.0.0.0'}`,
    `--secure-port=${ports.apiserver}`,
    `--advertise-address=${network.nodeAddress}`,
    // The Service `kubernetes` may not point to loopback.
    ...(network.namespace === undefined ? ['--endpoint-reconciler-type=none'] : []),
    `--service-cluster-ip-range=${network.serviceCidr}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--allow-privileged=true',
    `--client-ca-file=${file('ca.crt')}`,
    `--tls-cert-file=${file('apiserver.crt')}`,
    `--tls-private-key-file=${file('apiserver.key')}`,
    `--kubelet-client-certificate=${file('apiserver-kubelet.crt')}`,
    `--kubelet-client-key=${file('apiserver-kubelet.key')}`,
    `--kubelet-certificate-authority=${file('ca.crt')}`,
    '--kubelet-preferred-address-types=InternalIP,Hostname',
    '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
    `--service-account-key-file=${file('sa.pub')}`,
    `--service-account-signing-key-file=${file('sa.key')}`,
    `--requestheader-client-ca-file=${file('front-proxy-ca.crt')}`,
    '--requestheader-allowed-names=front-proxy-client',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-username-headers=X-Remote-User',
    `--proxy-client-cert-file=${file('front-proxy.crt')}`,
    `--proxy-client-key-file=${file('front-proxy.key')}`,
  ]
}

/** The client's own throttle makes a fresh cluster's ServiceAccounts come seconds late. */
const unthrottled = ['--kube-api-qps=1000', '--kube-api-burst=2000']

function clientFlags(plan: Plan, kubeconfig: string, port: number): string[] {
  return [
    ...['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'].map(
      (flag) => `--${flag}=${kubeconfig}`,
    ),
    '--leader-elect=false',
    `--bind-address=${plan.network.nodeAddress}`,
    `--secure-port=${port}`,
    ...unthrottled,
  ]
}

export function controllerManagerFlags(plan: Plan, kubeconfigs: Kubeconfigs): string[] {
  const file = (name: string) => join(plan.pki, name)
  return [
    ...clientFlags(plan, kubeconfigs.controllerManager, plan.ports.controllerManager),
    '--use-service-account-credentials=true',
    `--root-ca-file=${file('ca.crt')}`,
    `--service-account-private-key-file=${file('sa.key')}`,
    `--cluster-signing-cert-file=${file('ca.crt')}`,
    `--cluster-signing-key-file=${file('ca.key')}`,
    '--allocate-node-cidrs=true',
    `--cluster-cidr=${plan.network.podCidr}`,
    '--node-cidr-mask-size=24',
    `--service-cluster-ip-range=${plan.network.serviceCidr}`,
  ]
}

export function schedulerFlags(plan: Plan, kubeconfigs: Kubeconfigs): string[] {
  return clientFlags(plan, kubeconfigs.scheduler, plan.ports.scheduler)
}
