import { statSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { StateLock } from '../../src/cluster/embedded/lock.ts'
import { messageOf, PosternError } from '../../src/core/errors.ts'
import { overlaps, prefixLength } from './cidr.ts'
import { locked, tryLock } from './lock.ts'
import { run } from './run.ts'
import type { Network } from './types.ts'

export interface OpenNetwork {
  network: Network
  /** Ends every process in the namespace, then removes it with its addresses and routes. */
  close(): Promise<void>
}

/** What is noted of a run. */
interface Run {
  state: string
  /** Was the folder empty when it began? Nothing in it is anybody else's then. */
  empty: boolean
}

/** One folder for each number in use; its lock is held by the process that uses it. */
const claims = '/run/postern-testbed'
const numbers = Array.from({ length: 250 }, (_, index) => index + 1)

/**
 * A network namespace with addresses that nothing on this machine uses, connected to the machine by a veth pair, with routes
 * to pods and services. What dead runs have left is removed first.
 *
 * @param state the run's folder: if this process dies it is deleted with the namespace, provided that it is empty now
 * @returns undefined where network namespaces are not allowed
 * @throws PosternError `TestbedNetwork` when no number is free
 */
export async function openNetwork(state: string): Promise<OpenNetwork | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined
  await mkdir(claims, { recursive: true, mode: 0o700 })
  return await locked(claims, async () => {
    await removeLeftovers()
    const { number, lock } = await claim({ state, empty: (await readdir(state)).length === 0 })
    const give = async () => {
      await rm(claimOf(number), { recursive: true, force: true })
      lock.release()
    }
    try {
      if (!(await addNamespace(number))) {
        await give()
        return undefined
      }
      await connect(number)
    } catch (error) {
      await remove(number)
      await give()
      throw error
    }
    let closed: Promise<void> | undefined
    // Once: the number may be another's afterwards.
    const close = () => (closed ??= locked(claims, () => remove(number).then(give)))
    return { network: networkOf(number), close }
  })
}

/** Without a namespace: for a control plane alone. */
export const loopback: Network = {
  ...networkOf(0),
  namespace: undefined,
  nodeAddress: '127.0.0.1',
  hostAddress: '127.0.0.1',
}

/** Addresses of a test bed's number, whether it runs or not. */
function networkOf(number: number): Network {
  return {
    namespace: `postern-${number}`,
    nodeAddress: `10.201.${number}.2`,
    hostAddress: `10.201.${number}.1`,
    podCidr: `10.244.${number}.0/24`,
    serviceCidr: `10.96.${number}.0/24`,
    dnsAddress: `10.96.${number}.10`,
    apiAddress: `10.96.${number}.1`,
  }
}

const claimOf = (number: number) => join(claims, String(number))
const linkOf = (number: number) => `postern${number}`
const pathOf = (number: number) => `/run/netns/${networkOf(number).namespace}`

async function claim(noted: Run): Promise<{ number: number; lock: StateLock }> {
  const taken = await takenCidrs()
  for (const number of numbers) {
    const { podCidr, serviceCidr } = networkOf(number)
    const own = [`10.201.${number}.0/24`, podCidr, serviceCidr]
    if (taken.some((cidr) => own.some((mine) => overlaps(mine, cidr)))) continue
    const lock = tryLock(claimOf(number))
    if (lock === undefined) continue
    // Of one that has died just now.
    if ((await runOf(number)) !== undefined) await removeRun(number)
    await writeFile(join(claimOf(number), 'run.json'), JSON.stringify(noted), { mode: 0o600 })
    return { number, lock }
  }
  throw new PosternError(
    'TestbedNetwork',
    'every one of 250 address ranges is routed or in use on this machine: end a test bed, or look at `ip route`',
  )
}

/** What this machine routes, wide routes such as a default one or a VPN's 10.0.0.0/8 aside: ours are nearer than those. */
async function takenCidrs(): Promise<string[]> {
  const routes = JSON.parse(await run('ip', ['-4', '-json', 'route', 'show', 'table', 'all'])) as {
    dst: string
  }[]
  return routes.map((route) => route.dst).filter((dst) => dst !== 'default' && prefixLength(dst) >= 16)
}

/** False where this is not allowed: a container's root often may not. */
async function addNamespace(number: number): Promise<boolean> {
  const { namespace } = networkOf(number)
  try {
    await run('ip', ['netns', 'add', namespace!])
  } catch (error) {
    if (/Operation not permitted|Permission denied/.test(messageOf(error))) return false
    throw error
  }
  return true
}

async function connect(number: number): Promise<void> {
  const { namespace, nodeAddress, hostAddress, podCidr, serviceCidr } = networkOf(number)
  const ip = (...args: string[]) => run('ip', args)
  const inside = (...args: string[]) => ip('-n', namespace!, ...args)
  const link = linkOf(number)
  await ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'node0', 'netns', namespace!)
  await ip('addr', 'add', `${hostAddress}/24`, 'dev', link)
  await ip('link', 'set', link, 'up')
  await inside('link', 'set', 'lo', 'up')
  await inside('addr', 'add', `${nodeAddress}/24`, 'dev', 'node0')
  await inside('link', 'set', 'node0', 'up')
  // Routing comes before DNAT: without a route the node's processes find a service's address unreachable.
  await inside('route', 'add', serviceCidr, 'dev', 'node0')
  await ip('route', 'add', podCidr, 'via', nodeAddress, 'dev', link)
  await ip('route', 'add', serviceCidr, 'via', nodeAddress, 'dev', link)
  const settings = ['net.ipv4.ip_forward=1', 'net.bridge.bridge-nf-call-iptables=1']
  await run('nsenter', [`--net=${pathOf(number)}`, '--', 'sysctl', '-eqw', ...settings])
}

async function remove(number: number): Promise<void> {
  await killWithin(pathOf(number))
  const { namespace } = networkOf(number)
  // The host's end takes the other end and the routes with it. Either may be gone already.
  await run('ip', ['link', 'del', linkOf(number)]).catch(() => {})
  if (await exists(pathOf(number))) await run('ip', ['netns', 'del', namespace!])
}

/** Of runs whose process is dead: its lock is free. Called while nobody else claims or gives back. */
async function removeLeftovers(): Promise<void> {
  for (const name of await readdir(claims)) {
    if (!/^\d{1,3}$/.test(name)) continue
    const number = Number(name)
    const lock = tryLock(claimOf(number))
    if (lock === undefined) continue
    await removeRun(number)
    await rm(claimOf(number), { recursive: true, force: true })
    lock.release()
  }
}

/** All of a dead run but its claim. */
async function removeRun(number: number): Promise<void> {
  const dead = await runOf(number)
  await killWithin(pathOf(number))
  if (dead !== undefined) await nodeLeftovers(dead.state)
  await remove(number)
  if (dead?.empty) await rm(dead.state, { recursive: true, force: true })
}

/** Only a node leaves more than processes; its code is read when it is needed. */
async function nodeLeftovers(state: string): Promise<void> {
  const { removeNodeLeftovers } = await import('./node/leftovers.ts')
  await removeNodeLeftovers(state)
}

async function runOf(number: number): Promise<Run | undefined> {
  try {
    const read = JSON.parse(await readFile(join(claimOf(number), 'run.json'), 'utf8')) as Partial<Run>
    return typeof read.state === 'string' && read.state.startsWith('/')
      ? { state: read.state, empty: read.empty === true }
      : undefined
  } catch {
    // It died before it had noted it.
    return undefined
  }
}

/** SIGKILL for every process whose network namespace is this one; known by the namespace itself, never by a name. */
async function killWithin(path: string): Promise<void> {
  const namespace = await stat(path).catch(() => undefined)
  if (namespace === undefined) return
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    try {
      const found = statSync(`/proc/${pid}/ns/net`)
      if (found.ino === namespace.ino && found.dev === namespace.dev) process.kill(Number(pid), 'SIGKILL')
    } catch {
      // Gone meanwhile, or a kernel thread's.
    }
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}
