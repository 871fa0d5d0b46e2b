import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { codeOf, PosternError } from '../../../src/core/errors.ts'
import { waitUntil } from './wait.ts'

/**
 * Makes a cgroup of the node's own in every hierarchy that is mounted (version 1), or in the one of version 2. One of that
 * name is what a dead run has left, and removed first.
 *
 * @param cgroup its path below each hierarchy, as the kubelet's cgroupRoot takes it: /NAME
 */
export async function makeCgroups(cgroup: string): Promise<void> {
  await removeCgroups(cgroup)
  for (const { path, unified } of await mountedHierarchies()) {
    const folder = join(path, cgroup)
    if (unified) await delegate(path)
    await mkdir(folder)
    if (unified) await delegate(folder)
    // An empty set of cores or memory nodes admits no process.
    else for (const file of ['cpuset.cpus', 'cpuset.mems']) await copy(path, folder, file)
  }
}

/** Kills what is in a cgroup of `makeCgroups` and below it, and removes it. */
export async function removeCgroups(cgroup: string): Promise<void> {
  for (const pid of await processesIn(cgroup)) kill(pid)
  for (const { path } of await mountedHierarchies()) {
    const folder = join(path, cgroup)
    const left = () => processesIn(cgroup).then((pids) => `processes ${pids}`)
    // A killed process leaves its cgroup a moment later.
    await waitUntil(`the cgroup ${folder} to be removed`, 10_000, () => removeTree(folder), left)
  }
}

/** Ids of all processes in a cgroup of `makeCgroups` and below it; only those of a pod, if its uid is given. */
export async function processesIn(cgroup: string, podUid?: string): Promise<number[]> {
  const found = new Set<number>()
  for (const { path } of await mountedHierarchies()) {
    const files = await readdir(join(path, cgroup), { recursive: true }).catch(() => [])
    for (const file of files) {
      if (basename(file) !== 'cgroup.procs') continue
      if (podUid !== undefined && !file.split('/').includes(`pod${podUid}`)) continue
      const text = await readFile(join(path, cgroup, file), 'utf8').catch(() => '')
      for (const pid of text.split('\n').filter(Boolean)) found.add(Number(pid))
    }
  }
  return [...found]
}

async function mountedHierarchies(): Promise<{ path: string; unified: boolean }[]> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map((line) => line.split(' '))
  const all = mounts.flatMap(([, path = '', type]) => {
    if (type !== 'cgroup' && type !== 'cgroup2') return []
    return [{ path, type }]
  })
  const hybrid = all.some(({ type }) => type === 'cgroup')
  const found = all.map(({ path, type }) => ({ path, unified: type === 'cgroup2' && !hybrid }))
  if (found.length === 0)
    throw new PosternError('NodeCgroups', 'no cgroups are mounted: mount them on /sys/fs/cgroup')
  return found
}

/** Lets the cgroups below this one use what this one may use (version 2). */
async function delegate(folder: string): Promise<void> {
  const controllers = (await readFile(join(folder, 'cgroup.controllers'), 'utf8'))
    .trim()
    .split(/\s+/)
    .filter(Boolean)
  try {
    await writeFile(join(folder, 'cgroup.subtree_control'), controllers.map((name) => `+${name}`).join(' '))
  } catch (cause) {
    const remedy = `it must hold no process itself: move them to a cgroup below ${folder}`
    throw new PosternError('NodeCgroups', `${folder} cannot be shared out: ${remedy}`, { cause })
  }
}

async function copy(from: string, to: string, file: string): Promise<void> {
  const value = await readFile(join(from, file), 'utf8').catch(() => undefined)
  if (value !== undefined) await writeFile(join(to, file), value)
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (codeOf(error) !== 'ESRCH') throw error
  }
}

async function removeTree(folder: string): Promise<boolean> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) if (entry.isDirectory()) await removeTree(join(folder, entry.name))
  return rmdir(folder).then(
    () => true,
    (error) => codeOf(error) === 'ENOENT',
  )
}
