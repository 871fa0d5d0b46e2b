import { readFile } from 'node:fs/promises'
import { codeOf } from '../../../src/core/errors.ts'
import type { Process, SpawnOptions, Testbed } from '../types.ts'
import { waitUntil } from './wait.ts'

/**
 * Folders that containerd, its shims, the network plugins and the kubelet use whatever they are told: each node has its
 * own. On the machine itself they are made and stay empty.
 */
const ownFolders = ['/run/containerd', '/var/lib/cni', '/var/lib/kubelet', '/var/log/containers']

/** A mount and a process namespace around all of a node. When they end, the kernel kills every process and undoes every mount. */
export interface NodeNamespaces {
  /** Starts a program in them. To stop it is to kill it. */
  spawn(name: string, command: string, args: readonly string[], options?: SpawnOptions): Promise<Process>
  /** Kills all that runs in them. Resolves when it is gone. */
  end(): Promise<void>
}

/**
 * Makes the namespaces. They end with this process at the latest, however that ends: pods, and the shims around them, which
 * outlive containerd by design, cannot be left behind.
 */
export async function makeNamespaces(testbed: Testbed): Promise<NodeNamespaces> {
  const mounts = ownFolders.map((folder) => `mkdir -p ${folder} && mount -t tmpfs testbed ${folder} &&`)
  // The first process of a process namespace must reap those whose parents are gone: the shell does, while it waits.
  const script = `${mounts.join(' ')} { sleep infinity & echo ready; wait; }`
  const unshare = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '/bin/sh', '-c', script]
  const holder = await testbed.spawn('node', '/usr/bin/unshare', unshare)
  const first = await waitUntil("the node's first process", 10_000, async () => {
    if (!holder.running) throw new Error(`it ended: ${await holder.exited}; its log is ${holder.log}`)
    if (!(await readFile(holder.log, 'utf8')).endsWith('ready\n')) return undefined
    return Number(await readFile(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8')) || undefined
  })
  const enter = ['--target', `${first}`, '--mount', '--pid', '--', 'setpriv', '--pdeathsig', 'KILL', '--']
  return {
    spawn: (name, command, args, options) =>
      testbed.spawn(name, '/usr/bin/nsenter', [...enter, command, ...args], options),
    end: async () => {
      try {
        process.kill(first, 'SIGKILL')
      } catch (error) {
        if (codeOf(error) !== 'ESRCH') throw error
      }
      await holder.exited
    },
  }
}
