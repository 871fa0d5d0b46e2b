import assert from 'node:assert/strict'
import { overlaps } from '../../testbed/kubernetes/cidr.ts'
import { run } from '../../testbed/kubernetes/run.ts'
import type { Network } from '../../testbed/kubernetes/types.ts'

/**
 * Where a pod has opened TCP connections to outside of the cluster, as ADDRESS:PORT, each once, sorted: those that are
 * open, those that ended within the last two minutes, and those that nothing has answered.
 */
export async function connectionsOf(network: Network, podIp: string): Promise<string[]> {
  const inside = ['nsenter', `--net=/run/netns/${network.namespace}`, '--', 'conntrack']
  const [command, ...args] = [...inside, '-L', '-p', 'tcp', '-s', podIp]
  const table = await run(command!, args)
  const found = [...table.matchAll(/^tcp .*? src=(\S+) dst=(\S+) sport=\d+ dport=(\d+) /gm)]
  assert.ok(
    found.every(([, from]) => from === podIp),
    table,
  )
  const ours = [network.podCidr, network.serviceCidr]
  const outside = found.filter(([, , to]) => !ours.some((cidr) => overlaps(cidr, `${to}/32`)))
  return [...new Set(outside.map(([, , to, port]) => `${to}:${port}`))].sort()
}
