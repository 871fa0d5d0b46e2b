import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { removeCgroups } from './cgroups.ts'

// The kernel ends a node's processes and mounts together with the process that started it. Cgroups it keeps.

const noteIn = (state: string) => join(state, 'node', 'cgroup')

/** Notes a cgroup in a run's folder before it is made. What an earlier node has left in that folder is removed. */
export async function writeCgroup(state: string, cgroup: string): Promise<void> {
  const file = noteIn(state)
  await rm(dirname(file), { recursive: true, force: true })
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, cgroup)
}

/** Removes what a node of a dead run has left outside of the run's folder. */
export async function removeNodeLeftovers(state: string): Promise<void> {
  const cgroup = await readFile(noteIn(state), 'utf8').catch(() => '')
  if (/^\/postern-\d+$/.test(cgroup)) await removeCgroups(cgroup)
}
