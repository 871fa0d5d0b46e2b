import { createHash } from 'node:crypto'
import type { ReportIdentity } from '../../controller/report-identity.ts'
import type { Resource } from '../../core/resource.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import {
  BRIDGES_FILE,
  REPORT_CERTIFICATE_FILE,
  REPORT_KEY_FILE,
  REPORT_TOKEN_FILE,
  TOPOLOGY_FILE,
  type TorTopology,
} from '../contract.ts'
import { TOPOLOGY_LIMITS } from '../topology-guard.ts'
import { type DaemonId, keysName, topologyName } from './names.ts'
import type { Observed } from './observed.ts'
import { owned } from './owned.ts'
import type { AuthFile } from './proxy-status.ts'

/** What is mounted into a daemon's pod: the topology, and the keys. */

/** The API's limit on a ConfigMap and a Secret is 1 MiB, their names and the keys' encoding included. */
const MOUNT_BYTES = 1_000_000

export interface Mounts {
  topology: Resource
  keys: Resource
  /** Of the topology's document, as the agent reports it. */
  applied: string
  /** Changes whenever one of the two does; tells nothing of a key. */
  digest: string
  /** Why the cluster or the agent would refuse them: what to split. */
  tooLarge?: string
}

export interface OnionKeyFile {
  /** As in the topology. */
  name: string
  /** 64 bytes in base64. A secret. */
  encoded: string
}

/** What the keys Secret holds. */
export interface KeysContent {
  onions: readonly OnionKeyFile[]
  /** Keys by which private onions of others are opened. */
  auths: readonly AuthFile[]
  /** Files about bridges, by name. Confidential. */
  bridges?: Record<string, string>
  identity: ReportIdentity
}

export function mountsOf(
  owner: TorDaemon,
  daemon: DaemonId,
  topology: TorTopology,
  content: KeysContent,
): Mounts {
  const document = JSON.stringify(topology)
  const keys = keysSecret(owner, daemon, content)
  const bytes = Math.max(Buffer.byteLength(document), sizeOf(keys.data as Record<string, string>))
  const applied = createHash('sha256').update(document).digest('hex')
  const large = bytes > MOUNT_BYTES || topology.onions.length > TOPOLOGY_LIMITS.onions
  return {
    topology: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: owned(owner, daemon, topologyName(daemon)),
      data: { [TOPOLOGY_FILE]: document },
    },
    keys,
    applied,
    digest: digestOf(applied, content),
    ...(large ? { tooLarge: largeMessage(topology, bytes) } : {}),
  }
}

/** Onions' keys are told by their addresses, which the topology has. */
function digestOf(applied: string, { auths, bridges = {}, identity }: KeysContent): string {
  const hash = createHash('sha256').update(applied).update(identity.certificate)
  for (const { file, publicKey } of auths) hash.update(file).update(publicKey)
  // What the agent reads; what the operator remembers beside it is no news to it.
  hash.update(bridges[BRIDGES_FILE] ?? '')
  return hash.digest('hex').slice(0, 16)
}

function largeMessage({ onions, proxies }: TorTopology, bytes: number): string {
  return `${onions.length} onions and ${proxies.length} proxies (${bytes} bytes) are too many for one daemon, which takes ${TOPOLOGY_LIMITS.onions} onions in ${MOUNT_BYTES} bytes; what was in force stays so: move some to another TorDaemon by spec.daemonRef`
}

function keysSecret(owner: TorDaemon, daemon: DaemonId, content: KeysContent): Resource {
  const { onions, auths, bridges = {}, identity } = content
  const data: Record<string, string> = {
    [REPORT_CERTIFICATE_FILE]: base64(identity.certificate),
    [REPORT_KEY_FILE]: base64(identity.privateKey),
    [REPORT_TOKEN_FILE]: base64(identity.token),
  }
  for (const { name, encoded } of onions) data[`${name}.key`] = encoded
  for (const { file, encoded } of auths) data[file] = encoded
  for (const [file, text] of Object.entries(bridges)) data[file] = base64(text)
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: owned(owner, daemon, keysName(daemon)),
    type: 'Opaque',
    data,
  }
}

/** The identity that the keys Secret holds already, if it is whole. */
export function identityOf(keys: Observed['keys']): ReportIdentity | undefined {
  const certificate = text(keys?.data?.[REPORT_CERTIFICATE_FILE])
  const privateKey = text(keys?.data?.[REPORT_KEY_FILE])
  const token = text(keys?.data?.[REPORT_TOKEN_FILE])
  if (certificate === undefined || privateKey === undefined || token === undefined) return undefined
  return { certificate, privateKey, token }
}

function sizeOf(data: Record<string, string>): number {
  return Object.entries(data).reduce((sum, [name, value]) => sum + name.length + value.length, 0)
}

function base64(value: string): string {
  return Buffer.from(value, 'utf8').toString('base64')
}

function text(value: string | undefined): string | undefined {
  return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8')
}
