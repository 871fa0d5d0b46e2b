import { access, constants } from 'node:fs/promises'
import { messageOf } from '../../../src/core/errors.ts'
import { run } from '../run.ts'

/** Program, and the Debian package that brings it. */
const NEEDED: Record<string, string> = {
  '/usr/bin/containerd': 'containerd',
  '/usr/bin/ctr': 'containerd',
  '/usr/sbin/runc': 'runc',
  '/usr/lib/cni/bridge': 'containernetworking-plugins',
  '/usr/lib/cni/host-local': 'containernetworking-plugins',
  '/usr/lib/cni/loopback': 'containernetworking-plugins',
  '/usr/lib/cni/portmap': 'containernetworking-plugins',
  '/usr/sbin/iptables': 'iptables',
  '/usr/sbin/nft': 'nftables',
  '/usr/sbin/conntrack': 'conntrack',
  '/bin/busybox': 'busybox-static',
  '/usr/bin/curl': 'curl',
  '/usr/bin/unshare': 'util-linux',
}

/** Why this machine cannot run a node, with the remedy; undefined when it can. */
export async function whyNoNode(): Promise<string | undefined> {
  if (process.platform !== 'linux') return 'a node needs Linux'
  if (process.getuid?.() !== 0) return 'a node needs root'
  const missing = new Set<string>()
  for (const [path, name] of Object.entries(NEEDED)) {
    await access(path, constants.X_OK).catch(() => missing.add(name))
  }
  if (missing.size > 0) return `missing: apt-get install ${[...missing].join(' ')}`
  // Root in a container may have none of what it takes: namespaces of its own with mounts in them.
  const trial = [
    '--mount',
    '--pid',
    '--fork',
    '--kill-child',
    '--mount-proc',
    'mount',
    '-t',
    'tmpfs',
    'none',
    '/mnt',
  ]
  return run('/usr/bin/unshare', trial, { signal: AbortSignal.timeout(10_000) }).then(
    () => undefined,
    (error) => `no namespaces for a node here: ${messageOf(error)}`,
  )
}
